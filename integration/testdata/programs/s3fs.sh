# A file system on top of objects: copies, appends, renames of directories.
aws --endpoint-url "$URL" s3 mb "s3://$BUCKET"
echo "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" > "$WORK/passwd"
chmod 600 "$WORK/passwd"
mkdir "$WORK/mnt"
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
style=
[ "$STYLE" = host ] || style=,use_path_request_style
s3fs "$BUCKET" "$WORK/mnt" -o "url=$URL,passwd_file=$WORK/passwd$style"
trap 'fusermount3 -u -z "$WORK/mnt"' EXIT
cp -r "$TREE" "$WORK/mnt/tree"
diff -r "$TREE" "$WORK/mnt/tree"
mv "$WORK/mnt/tree/sub" "$WORK/mnt/tree/moved"
diff -r "$TREE/sub" "$WORK/mnt/tree/moved"
echo one > "$WORK/mnt/log"
echo two >> "$WORK/mnt/log"
printf 'one\ntwo\n' | cmp - "$WORK/mnt/log"
rm -r "$WORK/mnt/tree"
[ "$(ls "$WORK/mnt")" = log ]
