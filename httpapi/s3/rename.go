package s3

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"ogw/httpapi"
	"ogw/vfs"
)

const (
	renameSourceHeader = "X-Amz-Rename-Source"
	renameSourcePrefix = renameSourceHeader + "-"
	// renameDirHeader is this gateway's own: keys that end in "/" stand for all
	// that begins so.
	renameDirHeader = "X-Ogw-Rename-Directory"
	// clientTokenHeader names a rename that a client may send again.
	clientTokenHeader   = "X-Amz-Client-Token"
	maxClientTokenBytes = 64 // S3's bound
)

var (
	codeDirNotEmpty   = code{"DirectoryNotEmpty", 409, "The directory that you tried to rename to is not empty."}
	codeTokenMismatch = code{"IdempotencyParameterMismatch", 400, "Parameters on this idempotent request are inconsistent with parameters used in previous request(s)."}
)

// renameObject is RenameObject: an object of the bucket, or all below a prefix.
func (q *request) renameObject() error {
	from, err := q.renameSource()
	if err != nil {
		return err
	}
	httpapi.NoteText(q.ctx, "source", "/"+q.name.Bucket+"/"+from)
	dir := strings.HasSuffix(from, "/") || strings.HasSuffix(q.name.Key, "/")
	switch asked := q.r.Header.Get(renameDirHeader); {
	case asked != "" && asked != "true" && asked != "false":
		return invalidArgument("x-ogw-rename-directory", asked, "The value is true or false.")
	case dir && asked != "true":
		return newError(codeInvalidRequest).withMessage("Keys that end in / are renamed, with all keys that begin so, if x-ogw-rename-directory is true.")
	}
	o := vfs.RenameOptions{
		SourceCond: httpapi.ParseConditions(q.r.Header, renameSourcePrefix).VFS(),
		Cond:       httpapi.ParseConditions(q.r.Header, "").VFS(),
	}
	err = q.renameOnce(from, o)
	if err == nil {
		q.w.WriteHeader(http.StatusOK)
	}
	return err
}

// renameOnce renames, unless that was done under the same client token.
func (q *request) renameOnce(from string, o vfs.RenameOptions) error {
	name := q.r.Header.Get(clientTokenHeader)
	if len(name) > maxClientTokenBytes || strings.ContainsFunc(name, func(c rune) bool { return c < '!' || c > '~' }) {
		return invalidArgument("x-amz-client-token", name, "The client token has at most 64 printable ASCII characters.")
	}
	if name == "" || q.id.anonymous() {
		return q.renameFrom(q.ctx, from, o)
	}
	token := digestOf(string(q.id.id()), name)
	what := digestOf(string(q.id.id()), name, q.name.Bucket, from, q.name.Key)
	switch made, ok := q.renames.find(token); {
	case ok && made != what:
		return newError(codeTokenMismatch)
	case ok:
		return nil
	}
	err := q.renameFrom(vfs.WithToken(q.ctx, &vfs.Token{ID: what}), from, o)
	if errors.Is(err, vfs.ErrDone) {
		err = nil // by the process before this one
	}
	if err == nil {
		q.renames.done(token, what)
	}
	return err
}

func (q *request) renameFrom(ctx context.Context, from string, o vfs.RenameOptions) error {
	err := q.fs.RenameObject(ctx, q.name.Bucket, from, q.name.Key, o)
	switch {
	case errors.Is(err, vfs.ErrNotEmpty):
		return newError(codeDirNotEmpty)
	case errors.Is(err, vfs.ErrNoSuchKey):
		return newError(codeNoSuchKey).with("Key", from) // the source's, not ours
	case errors.Is(err, vfs.ErrNotModified):
		return vfs.ErrPrecondition // a rename has no 304
	}
	return err
}

// renameSource reads x-amz-rename-source: a key of the same bucket, in URL form, also
// behind the bucket's name.
func (q *request) renameSource() (string, error) {
	v := q.r.Header.Get(renameSourceHeader)
	from, err := url.PathUnescape(v)
	if rest, ok := strings.CutPrefix(from, "/"+q.name.Bucket+"/"); ok {
		from = rest
	}
	if err != nil || from == "" {
		return "", invalidArgument("x-amz-rename-source", v, "Rename Source must mention the source key.")
	}
	return from, nil
}
