# Debian's, and the one that OGW_RCLONE names.
export RCLONE_CONFIG=/dev/null RCLONE_CONFIG_O_TYPE=s3 RCLONE_CONFIG_O_PROVIDER=Other RCLONE_CONFIG_O_ENDPOINT="$URL" RCLONE_CONFIG_O_REGION=us-east-1
export RCLONE_CONFIG_O_ACCESS_KEY_ID="$AWS_ACCESS_KEY_ID" RCLONE_CONFIG_O_SECRET_ACCESS_KEY="$AWS_SECRET_ACCESS_KEY"
[ "$STYLE" = path ] || export RCLONE_CONFIG_O_FORCE_PATH_STYLE=false
unset AWS_CA_BUNDLE # Debian's does not take it
for program in rclone ${OGW_RCLONE:-}; do
	rclone() { command "$program" "$@"; }
	rclone mkdir "o:$BUCKET"
	rclone sync "$TREE" "o:$BUCKET/tree" --s3-upload-cutoff 5M --s3-chunk-size 5M
	rclone check --download "$TREE" "o:$BUCKET/tree"
	# Times of modification were kept: there is nothing to do.
	[ -z "$(rclone sync -v "$TREE" "o:$BUCKET/tree" 2>&1 | grep Copied)" ]
	rclone sync "o:$BUCKET/tree" "$WORK/back"
	diff -r "$TREE" "$WORK/back"
	rclone moveto "o:$BUCKET/tree/big" "o:$BUCKET/moved"
	fetch "$(rclone link "o:$BUCKET/moved")" | cmp - "$TREE/big"
	[ "$(rclone lsf "o:$MANY" | wc -l)" = "$MANY_KEYS" ]
	rclone purge "o:$BUCKET"
	rm -r "$WORK/back"
done
