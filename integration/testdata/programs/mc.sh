# MinIO's client, the one that OGW_MC names.
mc() { "$OGW_MC" --config-dir "$WORK/mc" --quiet "$@"; }
mkdir -p "$WORK/mc/certs/CAs"
cp "$CERT" "$WORK/mc/certs/CAs/"
mc alias set o "$URL" "$AWS_ACCESS_KEY_ID" "$AWS_SECRET_ACCESS_KEY" --path "$([ "$STYLE" = host ] && echo off || echo on)"
mc mb "o/$BUCKET"
mc mirror "$TREE" "o/$BUCKET/tree"
mc mirror "o/$BUCKET/tree" "$WORK/back"
diff -r "$TREE" "$WORK/back"
mc cp --attr a=b "$TREE/one" "o/$BUCKET/meta"
mc stat "o/$BUCKET/meta" | grep -i 'meta-a *: b'
mc tag set "o/$BUCKET/meta" k=v
mc tag list "o/$BUCKET/meta" | grep 'k *: v'
mc anonymous set download "o/$BUCKET"
fetch "$OBJECTS/meta" | cmp - "$TREE/one"
mc anonymous set private "o/$BUCKET"
[ "$(curl -s -o /dev/null -w '%{http_code}' --cacert "$CERT" "$OBJECTS/meta")" = 403 ]
fetch "$(mc share download --json "o/$BUCKET/tree/big" | sed 's/.*"share":"\([^"]*\)".*/\1/; s/.u0026/\&/g')" | cmp - "$TREE/big"
# A form, as curl sends it.
form=$(mc share upload --json "o/$BUCKET/form" | sed 's/.*"share":"curl \([^"]*\)".*/\1/; s/<FILE>//')
fetch $form"$TREE/one"
mc cat "o/$BUCKET/form" | cmp - "$TREE/one"
[ "$(mc ls "o/$MANY" | wc -l)" = "$MANY_KEYS" ]
mc rb --force "o/$BUCKET"
