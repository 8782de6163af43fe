package s3

import (
	"net/url"
	"strings"

	"ogw/vfs"
)

const copySourceHeader = "X-Amz-Copy-Source"

// parseCopySource returns the object that x-amz-copy-source names.
func parseCopySource(v string) (src vfs.ObjectName, err error) {
	path, query, asks := strings.Cut(v, "?")
	version, ok := strings.CutPrefix(query, "versionId=")
	switch {
	case ok && version != "null":
		return src, newError(codeNoSuchVersion).with("VersionId", version)
	case strings.HasPrefix(path, "arn:"):
		return src, newError(codeNotImplemented).withMessage("Access points are not implemented.")
	}
	path, err = url.PathUnescape(path)
	src.Bucket, src.Key, _ = strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if err != nil || asks && !ok || src.Bucket == "" || src.Key == "" {
		return src, invalidArgument("x-amz-copy-source", v, "Copy Source must mention the source bucket and key: sourcebucket/sourcekey")
	}
	return src, nil
}
