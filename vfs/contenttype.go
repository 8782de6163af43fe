package vfs

import "strings"

const (
	// defaultContentType is that of a file whose name tells nothing.
	defaultContentType = "application/octet-stream"
	// dirContentType is that of a directory's own key.
	dirContentType = "application/x-directory"
)

// contentTypeOf derives a Content-Type from a key, for files that POSIX
// wrote. The table is our own and not the machine's (as package mime's is),
// so that all gateways of a cluster answer alike.
func contentTypeOf(key string) string {
	name := key[strings.LastIndexByte(key, '/')+1:]
	if name == "" {
		return dirContentType
	}
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 || len(name)-dot > maxExtensionBytes {
		return defaultContentType
	}
	if t, ok := extensionTypes(strings.ToLower(name[dot+1:])); ok {
		return t
	}
	return defaultContentType
}

const maxExtensionBytes = 12

// extensionTypes holds what browsers and tools care about (IANA media types).
func extensionTypes(ext string) (string, bool) {
	switch ext {
	case "txt", "text", "log", "conf", "ini", "c", "h", "cc", "cpp", "hpp", "go", "rs", "py", "sh", "java", "s", "mod", "sum":
		return "text/plain; charset=utf-8", true
	case "html", "htm":
		return "text/html; charset=utf-8", true
	case "css":
		return "text/css; charset=utf-8", true
	case "csv":
		return "text/csv; charset=utf-8", true
	case "md", "markdown":
		return "text/markdown; charset=utf-8", true
	case "js", "mjs":
		return "text/javascript; charset=utf-8", true
	case "xml":
		return "text/xml; charset=utf-8", true
	case "ics":
		return "text/calendar; charset=utf-8", true
	case "json", "map":
		return "application/json", true
	case "yaml", "yml":
		return "application/yaml", true
	case "toml":
		return "application/toml", true
	case "pdf":
		return "application/pdf", true
	case "wasm":
		return "application/wasm", true
	case "zip":
		return "application/zip", true
	case "gz", "tgz":
		return "application/gzip", true
	case "bz2":
		return "application/x-bzip2", true
	case "xz":
		return "application/x-xz", true
	case "zst":
		return "application/zstd", true
	case "tar":
		return "application/x-tar", true
	case "7z":
		return "application/x-7z-compressed", true
	case "jar":
		return "application/java-archive", true
	case "doc":
		return "application/msword", true
	case "docx":
		return "application/vnd.openxmlformats-officedocument.wordprocessingml.document", true
	case "xls":
		return "application/vnd.ms-excel", true
	case "xlsx":
		return "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", true
	case "ppt":
		return "application/vnd.ms-powerpoint", true
	case "pptx":
		return "application/vnd.openxmlformats-officedocument.presentationml.presentation", true
	case "parquet":
		return "application/vnd.apache.parquet", true
	case "sqlite":
		return "application/vnd.sqlite3", true
	case "png":
		return "image/png", true
	case "jpg", "jpeg":
		return "image/jpeg", true
	case "gif":
		return "image/gif", true
	case "svg":
		return "image/svg+xml", true
	case "webp":
		return "image/webp", true
	case "avif":
		return "image/avif", true
	case "ico":
		return "image/vnd.microsoft.icon", true
	case "tif", "tiff":
		return "image/tiff", true
	case "bmp":
		return "image/bmp", true
	case "mp3":
		return "audio/mpeg", true
	case "ogg", "oga", "opus":
		return "audio/ogg", true
	case "wav":
		return "audio/wav", true
	case "flac":
		return "audio/flac", true
	case "m4a":
		return "audio/mp4", true
	case "mp4", "m4v":
		return "video/mp4", true
	case "webm":
		return "video/webm", true
	case "mkv":
		return "video/matroska", true
	case "mov":
		return "video/quicktime", true
	case "mpg", "mpeg":
		return "video/mpeg", true
	case "avi":
		return "video/vnd.avi", true
	case "woff":
		return "font/woff", true
	case "woff2":
		return "font/woff2", true
	case "ttf":
		return "font/ttf", true
	case "otf":
		return "font/otf", true
	}
	return "", false
}
