# Backups of two states, their check with all data, and what forgetting leaves.
export RESTIC_REPOSITORY="s3:$URL/$BUCKET" RESTIC_PASSWORD=p RESTIC_CACHE_DIR="$WORK/cache"
restic() { command restic -o s3.bucket-lookup="$LOOKUP" "$@"; }
cp -r "$TREE" "$WORK/source"
restic init
restic backup "$WORK/source"
echo more > "$WORK/source/more"
restic backup "$WORK/source"
restic restore latest --target "$WORK/back"
diff -r "$WORK/source" "$WORK/back/$WORK/source"
restic forget --keep-last 1 --prune
restic check --read-data
