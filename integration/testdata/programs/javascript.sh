# Amazon's SDK and MinIO's, where OGW_NODE_MODULES has them.
for sdk in aws minio; do
	node "$HERE/javascript-$sdk.mjs"
done
