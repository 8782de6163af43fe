host=${URL#*://}
secure=False
[ "${URL%%:*}" = http ] || secure=True
template=$host
[ "$STYLE" = path ] || template="%(bucket)s.$host"
printf '[default]\naccess_key = %s\nsecret_key = %s\nhost_base = %s\nhost_bucket = %s\nuse_https = %s\nsignurl_use_https = %s\n' \
	"$AWS_ACCESS_KEY_ID" "$AWS_SECRET_ACCESS_KEY" "$host" "$template" "$secure" "$secure" > "$WORK/cfg"
s3cmd() { command s3cmd -c "$WORK/cfg" --no-progress --ca-certs="$CERT" "$@"; }
s3cmd mb "s3://$BUCKET"
s3cmd sync "$TREE/" "s3://$BUCKET/tree/"
mkdir "$WORK/back"
s3cmd sync "s3://$BUCKET/tree/" "$WORK/back/"
diff -r "$TREE" "$WORK/back"
s3cmd ls "s3://$BUCKET/tree/" | grep "DIR *s3://$BUCKET/tree/sub/"
s3cmd put --add-header=x-amz-meta-a:b "$TREE/one" "s3://$BUCKET/meta"
s3cmd info "s3://$BUCKET/meta" | grep 'x-amz-meta-a: *b'
fetch "$(s3cmd signurl "s3://$BUCKET/meta" +600)" | cmp - "$TREE/one"
[ "$(s3cmd ls "s3://$MANY" | wc -l)" = "$MANY_KEYS" ]
s3cmd setacl --acl-public "s3://$BUCKET/meta"
fetch "$OBJECTS/meta" | cmp - "$TREE/one"
echo "$READABLE" > "$WORK/policy"
s3cmd setpolicy "$WORK/policy" "s3://$BUCKET"
fetch "$OBJECTS/tree/big" | cmp - "$TREE/big" # stored in parts
s3cmd delpolicy "s3://$BUCKET"
s3cmd del --recursive --force "s3://$BUCKET"
s3cmd rb "s3://$BUCKET"
