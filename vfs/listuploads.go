package vfs

import (
	"cmp"
	"context"
	"unicode/utf8"

	"ogw/cluster"
	"ogw/vfs/internal/keypath"
	"ogw/vfs/internal/listing"
	"ogw/vfs/internal/uploads"
)

// UploadPage is one page of ListUploads.
type UploadPage struct {
	Uploads        []UploadInfo
	CommonPrefixes []string
	// Truncated reports whether there may be more behind (NextKey, NextUpload); a page
	// can be short, or empty, all the same. Where it ended at an upload that the
	// caller is not shown, NextUpload is sealed, and NextKey the newest key that
	// was returned, if any. See ListUploadsOptions.Text, too.
	Truncated  bool
	NextKey    string
	NextUpload string
}

// ListUploadsOptions of ListUploads.
type ListUploadsOptions struct {
	Prefix    string
	Delimiter string // any string
	// The page begins behind this upload of this key; with no upload, behind all of
	// the key. UploadPage has those that continue.
	AfterKey, AfterUpload string
	MaxUploads            int // 0 to MaxListKeys, common prefixes included
	// Text is for who writes what continues as text: where a page ended at a key, or
	// common prefix, that is not UTF-8, NextUpload is sealed, and NextKey the newest key
	// returned that is, or AfterKey.
	Text bool
}

// ListUploads returns uploads in order of key, then of upload: all to the bucket's
// owner, to others those that they began (S3 ListMultipartUploads).
func (fs *FS) ListUploads(ctx context.Context, bucket string, o ListUploadsOptions) (UploadPage, error) {
	from := listing.Position{Key: o.AfterKey}
	if at, ok, err := listing.OpenMarker(o.AfterUpload, bucket, fs.markerSecret(ctx)); err != nil {
		return UploadPage{}, err
	} else if ok {
		from = at
	} else if id, _, ok := keypath.ParseUploadID(o.AfterUpload); ok {
		from.ID = id
	}
	var l *listing.UploadPage
	err := fs.view(ctx, func(r cluster.Reader) error {
		ino, err := keypath.UploadBucket(r, bucket)
		if err != nil {
			return err
		}
		j := fs.rights.On(ctx, r, ino)
		l, err = listing.Uploads(&j, ino, listing.UploadOptions{Prefix: o.Prefix, Delimiter: o.Delimiter, After: from, Max: o.MaxUploads})
		return err
	})
	if err != nil {
		return UploadPage{}, err
	}
	page := UploadPage{CommonPrefixes: l.CommonPrefixes, Truncated: l.Truncated, NextKey: l.NextKey, NextUpload: l.NextUpload}
	for _, u := range l.Uploads {
		page.Uploads = append(page.Uploads, uploads.InfoOf(u))
	}
	sealed := l.PassedAt
	if o.Text && !utf8.ValidString(page.NextKey) {
		if sealed == nil {
			sealed = &listing.Position{Key: page.NextKey}
			sealed.ID, _, _ = keypath.ParseUploadID(page.NextUpload) // none behind a common prefix
		}
		page.NextKey = newestText(page.Uploads)
	}
	if sealed != nil {
		page.NextKey = cmp.Or(page.NextKey, o.AfterKey)
		if page.NextUpload, err = listing.SealMarker(*sealed, bucket, fs.markerSecret(ctx)); err != nil {
			return UploadPage{}, err
		}
	}
	return page, nil
}

// newestText returns the last key that is UTF-8, if any.
func newestText(list []UploadInfo) string {
	for i := len(list) - 1; i >= 0; i-- {
		if utf8.ValidString(list[i].Key) {
			return list[i].Key
		}
	}
	return ""
}

// UploadMarkerPrefix begins a marker that holds where a page of uploads ended to who
// may not know the key of the upload that stands there, or cannot write it, and the ID of
// no upload. It means something without a key beside it.
const UploadMarkerPrefix = listing.MarkerPrefix

// markerSecret returns what gives the secret that seals markers.
func (fs *FS) markerSecret(ctx context.Context) listing.Secret {
	return func() ([]byte, error) { return fs.StoreSecret(ctx, "uploads/markers") }
}
