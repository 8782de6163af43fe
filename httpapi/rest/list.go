package rest

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"ogw/httpapi/apierr"
	"ogw/vfs"
)

// Listing is one page of a directory, as JSON.
type Listing struct {
	Path    string  `json:"path"` // of the directory, escaped
	Entries []Entry `json:"entries"`
	// Next is the query that continues, "" at the end.
	Next string `json:"next,omitempty"`
}

// Entry of a directory.
type Entry struct {
	Name     string     `json:"name"` // decoded; "" of a directory named ""
	Href     string     `json:"href"` // escaped path, exact for any bytes
	Type     string     `json:"type"` // "file" or "directory"
	Size     *int64     `json:"size,omitempty"`
	ETag     string     `json:"etag,omitempty"`
	Modified *time.Time `json:"modified,omitempty"`
}

// getDirectory lists a directory. A directory with content of its own (an
// object whose key ends in a slash) shows that instead, unless the query
// says "list".
func (s *Server) getDirectory(r *request) error {
	q := r.URL.Query()
	if r.key != "" && !q.Has("list") {
		info, err := s.fs.HeadObject(r.Context(), vfs.ObjectName{Key: r.key}, vfs.GetOptions{})
		switch {
		case err == nil && info.Size > 0:
			return s.getOwnContent(r, &info)
		case err != nil && !absent(err) && !errors.Is(err, vfs.ErrAccess): // that is about its own content
			return err
		}
	}
	limit, err := parseLimit(q.Get("limit"))
	if err != nil {
		return err
	}
	list, err := s.listing(r, q.Get("after"), limit)
	if err != nil {
		return err
	}
	return s.writeListing(r, list)
}

func (s *Server) getOwnContent(r *request, info *vfs.ObjectInfo) error {
	if r.Method == http.MethodHead {
		return s.head(r, info)
	}
	obj, err := s.fs.GetObject(r.Context(), vfs.ObjectName{Key: r.key}, vfs.GetOptions{})
	if err != nil {
		return err
	}
	defer obj.Close() //nolint:errcheck // releases memory; nothing can be lost
	return s.serve(r, obj)
}

func parseLimit(s string) (int, error) {
	if s == "" {
		return vfs.MaxListKeys, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > vfs.MaxListKeys {
		return 0, fmt.Errorf("%w: limit %q is not a number from 1 to %d", apierr.ErrBadRequest, s, vfs.MaxListKeys)
	}
	return n, nil
}

// listing reads one page of entries whose names are greater than after.
func (s *Server) listing(r *request, after string, limit int) (*Listing, error) {
	o := vfs.ListOptions{Prefix: r.key, Delimiter: "/", MaxKeys: limit, StartAfter: r.key}
	if after != "" {
		o.StartAfter = r.key + after
	}
	page, err := s.fs.ListObjects(r.Context(), "", o)
	if err != nil && !absent(err) {
		return nil, err
	}
	if len(page.Objects)+len(page.CommonPrefixes) == 0 && r.key != "" && !page.Truncated {
		// Nothing in it: an explicit directory, or none at all.
		if _, err := s.fs.HeadObject(r.Context(), vfs.ObjectName{Key: r.key}, vfs.GetOptions{}); err != nil {
			if absent(err) && after != "" || errors.Is(err, vfs.ErrAccess) { // it is there
				err = nil
			}
			if err != nil {
				return nil, err
			}
		}
	}
	list := &Listing{Path: pathOf(r.key), Entries: merge(r.key, page)}
	if page.Truncated {
		list.Next = "?list&limit=" + strconv.Itoa(limit) + "&after=" + queryEscape(strings.TrimPrefix(page.Next, r.key))
	}
	return list, nil
}

// merge brings objects and directories of a page into one order.
func merge(dir string, page vfs.ListResult) []Entry {
	out := make([]Entry, 0, len(page.Objects)+len(page.CommonPrefixes))
	files, dirs := page.Objects, page.CommonPrefixes
	for len(files)+len(dirs) > 0 {
		if len(dirs) == 0 || len(files) > 0 && files[0].Key < dirs[0] {
			f := files[0]
			files = files[1:]
			if f.Key == dir {
				continue // the directory itself
			}
			modified := f.Modified.UTC()
			out = append(out, Entry{Name: strings.TrimPrefix(f.Key, dir), Href: pathOf(f.Key), Type: "file",
				Size: &f.Size, ETag: string(f.ETag), Modified: &modified})
			continue
		}
		name := strings.TrimSuffix(strings.TrimPrefix(dirs[0], dir), "/")
		out = append(out, Entry{Name: name, Href: pathOf(dirs[0]), Type: "directory"})
		dirs = dirs[1:]
	}
	return out
}

func queryEscape(s string) string { return strings.ReplaceAll(pathOf(s)[1:], "/", "%2F") }
