package naming

import "strings"

const (
	// defaultContentType is that of a file whose name has no known extension.
	defaultContentType = "application/octet-stream"
	// DirContentType is that of a directory's own key.
	DirContentType = "application/x-directory"
)

// ContentType derives a Content-Type from a key, for files that POSIX
// wrote. The table is our own and not the machine's (as package mime's is),
// so that all gateways of a cluster answer alike.
func ContentType(key string) string {
	name := key[strings.LastIndexByte(key, '/')+1:]
	if name == "" {
		return DirContentType
	}
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 || len(name)-dot > maxExtensionBytes {
		return defaultContentType
	}
	if t, ok := extensionTypes[strings.ToLower(name[dot+1:])]; ok {
		return t
	}
	return defaultContentType
}

const maxExtensionBytes = 12

// extensionTypes holds what browsers and tools care about (IANA media types).
var extensionTypes = byExtension([][2]string{
	{"text/plain; charset=utf-8", "txt text log conf ini c h cc cpp hpp go rs py sh java s mod sum"},
	{"text/html; charset=utf-8", "html htm"},
	{"text/css; charset=utf-8", "css"},
	{"text/csv; charset=utf-8", "csv"},
	{"text/markdown; charset=utf-8", "md markdown"},
	{"text/javascript; charset=utf-8", "js mjs"},
	{"text/xml; charset=utf-8", "xml"},
	{"text/calendar; charset=utf-8", "ics"},
	{"application/json", "json map"},
	{"application/yaml", "yaml yml"},
	{"application/toml", "toml"},
	{"application/pdf", "pdf"},
	{"application/wasm", "wasm"},
	{"application/zip", "zip"},
	{"application/gzip", "gz tgz"},
	{"application/x-bzip2", "bz2"},
	{"application/x-xz", "xz"},
	{"application/zstd", "zst"},
	{"application/x-tar", "tar"},
	{"application/x-7z-compressed", "7z"},
	{"application/java-archive", "jar"},
	{"application/msword", "doc"},
	{"application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"},
	{"application/vnd.ms-excel", "xls"},
	{"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"},
	{"application/vnd.ms-powerpoint", "ppt"},
	{"application/vnd.openxmlformats-officedocument.presentationml.presentation", "pptx"},
	{"application/vnd.apache.parquet", "parquet"},
	{"application/vnd.sqlite3", "sqlite"},
	{"image/png", "png"},
	{"image/jpeg", "jpg jpeg"},
	{"image/gif", "gif"},
	{"image/svg+xml", "svg"},
	{"image/webp", "webp"},
	{"image/avif", "avif"},
	{"image/vnd.microsoft.icon", "ico"},
	{"image/tiff", "tif tiff"},
	{"image/bmp", "bmp"},
	{"audio/mpeg", "mp3"},
	{"audio/ogg", "ogg oga opus"},
	{"audio/wav", "wav"},
	{"audio/flac", "flac"},
	{"audio/mp4", "m4a"},
	{"video/mp4", "mp4 m4v"},
	{"video/webm", "webm"},
	{"video/matroska", "mkv"},
	{"video/quicktime", "mov"},
	{"video/mpeg", "mpg mpeg"},
	{"video/vnd.avi", "avi"},
	{"font/woff", "woff"},
	{"font/woff2", "woff2"},
	{"font/ttf", "ttf"},
	{"font/otf", "otf"},
})

// byExtension takes types, each with its extensions.
func byExtension(list [][2]string) map[string]string {
	types := make(map[string]string)
	for _, l := range list {
		for _, ext := range strings.Fields(l[1]) {
			types[ext] = l[0]
		}
	}
	return types
}
