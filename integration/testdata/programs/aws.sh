# Each aws of PATH, and the version 1 that OGW_NODE_MODULES has: versions 1 and 2 sign,
# check and send bodies in different ways.
programs=$(type -ap aws | xargs -n1 realpath | sort -u)
if [ -n "${OGW_NODE_MODULES:-}" ]; then
	printf '#!/bin/sh\nPYTHONPATH="$OGW_NODE_MODULES/awscli" exec python3 "$OGW_NODE_MODULES/awscli/aws" "$@"\n' > "$WORK/aws1"
	chmod +x "$WORK/aws1"
	"$WORK/aws1" --version | grep '^aws-cli/1\.'
	programs="$programs $WORK/aws1"
fi
for program in $programs; do
	aws() { "$program" --endpoint-url "$URL" "$@"; }
	aws s3 mb "s3://$BUCKET"
	# Connections that served an empty upload are used again.
	aws s3 sync --only-show-errors "$TREE" "s3://$BUCKET/tree"
	[ -z "$(aws s3 sync "$TREE" "s3://$BUCKET/tree")" ]
	aws s3 sync --only-show-errors "s3://$BUCKET/tree" "$WORK/back"
	diff -r "$TREE" "$WORK/back"
	aws s3 mv --only-show-errors "s3://$BUCKET/tree/big" "s3://$BUCKET/moved"
	aws s3 cp --only-show-errors --metadata a=b "$TREE/one" "s3://$BUCKET/meta"
	[ "$(aws s3api head-object --bucket "$BUCKET" --key meta --query Metadata.a --output text)" = b ]
	aws s3api put-object-tagging --bucket "$BUCKET" --key meta --tagging 'TagSet=[{Key=k,Value=v}]'
	[ "$(aws s3api get-object-tagging --bucket "$BUCKET" --key meta --query 'TagSet[0].Value' --output text)" = v ]
	fetch "$(aws s3 presign "s3://$BUCKET/moved")" | cmp - "$TREE/big"
	[ "$(aws s3api list-objects-v2 --bucket "$MANY" --query 'length(Contents)')" = "$MANY_KEYS" ]
	aws s3api put-bucket-policy --bucket "$BUCKET" --policy "$READABLE"
	fetch "$OBJECTS/meta" | cmp - "$TREE/one"
	aws s3 rb --force "s3://$BUCKET"
	rm -r "$WORK/back"
done
