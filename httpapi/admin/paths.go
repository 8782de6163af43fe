package admin

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/julienschmidt/httprouter"

	"ogw/httpapi"
	"ogw/httpapi/apierr"
	"ogw/vfs"
)

// StoredPath turns what an operator types into "bucket/key": a URL or host
// form is taken apart as the S3 door would, with the given service domains,
// which are in lower case.
//
//	photos/a.jpg                 photos/a.jpg
//	/photos/a.jpg                photos/a.jpg
//	s3://photos/a.jpg            photos/a.jpg
//	photos.example.com/a.jpg     the bucket photos.example.com (bare host)
//	photos.s3.example.com/a.jpg  photos/a.jpg, if s3.example.com is a domain
//	s3.example.com/photos/a.jpg  photos/a.jpg, likewise
//
// Behind http:// and https:// it is a URL: the query goes, and %20 is a blank.
// Everywhere else all characters are those of the key.
func StoredPath(arg string, domains []string) string {
	scheme, path, ok := strings.Cut(arg, "://")
	switch {
	case ok && (scheme == "http" || scheme == "https"):
		path = unescaped(path)
	case !ok || scheme != "s3":
		path = arg
	}
	if strings.HasPrefix(path, "/") {
		return path[1:]
	}
	host, key, _ := strings.Cut(path, "/")
	bare := strings.ToLower(host)
	if i := strings.LastIndexByte(bare, ':'); i >= 0 {
		bare = bare[:i] // a port is never part of a bucket's name
	}
	switch bucket, below := httpapi.BucketBelow(bare, domains); {
	case !below:
		return path
	case bucket == "":
		return key
	default:
		return bucket + "/" + key
	}
}

// unescaped returns the path that a URL without its scheme names; one that is wrongly
// escaped names what it says.
func unescaped(rest string) string {
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		rest = rest[:i]
	}
	if path, err := url.PathUnescape(rest); err == nil {
		return path
	}
	return rest
}

func (s *Server) whereis(r *http.Request, _ httprouter.Params) (any, error) {
	path := StoredPath(r.URL.Query().Get("path"), s.Domains)
	if path == "" {
		return nil, fmt.Errorf("%w: %q names no bucket or file", apierr.ErrBadRequest, r.URL.Query().Get("path"))
	}
	out := Whereis{Path: path, Extents: []Extent{}}
	info, extents, err := s.fs.Whereis(r.Context(), path)
	switch {
	case errors.Is(err, vfs.ErrNotExist), errors.Is(err, vfs.ErrNoSuchKey), errors.Is(err, vfs.ErrNoSuchBucket):
		return out, nil
	case err != nil:
		return nil, err
	}
	out.Directory = info.Mode&vfs.ModeTypeMask == vfs.ModeDirectory
	out.Exists, out.Size, out.ETag = true, info.Size, string(info.ETag)
	out.Modified, out.Inode = info.Modified.UTC(), uint64(info.Ino)
	for _, e := range extents {
		x := Extent{Offset: e.Off, Length: e.Len, Kind: e.Kind, Blob: e.Blob, Copies: []Location{}}
		for _, n := range e.Nodes {
			x.Copies = append(x.Copies, Location{n.Node, n.Address, n.Path, n.Detail, n.Primary})
		}
		out.Extents = append(out.Extents, x)
	}
	return out, nil
}

func (s *Server) purge(r *http.Request, _ httprouter.Params) (any, error) {
	var q PathRequest
	if err := decode(r, &q); err != nil {
		return nil, err
	}
	path := StoredPath(q.Path, s.Domains)
	if path == "" {
		return nil, fmt.Errorf("%w: %q names no bucket or file", apierr.ErrBadRequest, q.Path)
	}
	n, others, err := s.fs.PurgeAll(r.Context(), path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	out := Purged{Path: path, Inodes: n}
	for i := range others {
		o := &others[i]
		out.Others = append(out.Others, PurgedGateway{o.Host, o.PID, o.Answered, o.Gone, o.Inodes, o.Error})
	}
	return out, nil
}

func (s *Server) check(r *http.Request, _ httprouter.Params) (any, error) {
	var q CheckRequest
	if err := decode(r, &q); err != nil {
		return nil, err
	}
	c, err := s.fs.Check(r.Context(), vfs.CheckOptions{Repair: q.Repair, Data: q.Data})
	if err != nil {
		return nil, err
	}
	out := CheckReport{
		Inodes: c.Inodes, Directories: c.Directories, Files: c.Files, Contents: c.Contents,
		Extents: c.Extents, Blobs: c.Blobs, Bytes: c.Bytes,
		Problems: []Problem{}, Dropped: c.Dropped, Repaired: c.Repaired, Mendable: c.Mendable,
		AsideBlobs: c.Aside, AsideBytes: c.AsideBytes,
	}
	for _, p := range c.Problems {
		out.Problems = append(out.Problems, Problem{p.Kind, p.Detail, p.Repaired})
	}
	out.Clean = out.Left() == 0
	return out, nil
}
