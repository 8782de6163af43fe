# A full backup in volumes, an incremental one, both verified and restored.
duplicity() { command duplicity --no-encryption --archive-dir "$WORK/archive" --s3-endpoint-url "$URL" "$@"; }
cp -r "$TREE" "$WORK/source"
aws --endpoint-url "$URL" s3 mb "s3://$BUCKET"
duplicity --volsize 5 full "$WORK/source" "boto3+s3://$BUCKET/chain"
echo more > "$WORK/source/more"
duplicity incremental "$WORK/source" "boto3+s3://$BUCKET/chain"
duplicity verify --compare-data "boto3+s3://$BUCKET/chain" "$WORK/source"
duplicity restore "boto3+s3://$BUCKET/chain" "$WORK/back"
diff -r "$WORK/source" "$WORK/back"
