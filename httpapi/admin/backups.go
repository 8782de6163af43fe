package admin

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/julienschmidt/httprouter"

	"ogw/cluster"
	"ogw/httpapi"
	"ogw/httpapi/apierr"
	"ogw/vfs"
	"ogw/vfs/seal"
)

// MaxBackupBlobs bounds the blobs of one request.
const MaxBackupBlobs = 1024

// AddBackup asks for an instant to be held.
type AddBackup struct {
	// Keys are those of a key file, which seal the secrets in the backup.
	Keys string `json:"keys,omitempty"`
	// DropSecrets leaves them out.
	DropSecrets bool `json:"drop_secrets,omitempty"`
}

// Backup is an instant that is held until it is removed, or was not used for
// vfs.BackupLease.
type Backup struct {
	ID string `json:"id"`
	vfs.BackupInfo
	Version string `json:"version"` // of the program
}

// backupBlobs asks for blobs.
type backupBlobs struct {
	Blobs []backupBlob `json:"blobs"`
}

type backupBlob struct {
	ID   string `json:"id"`
	Size int64  `json:"size"`
}

// UseBackup tells that a backup is still in use, and where it is.
type UseBackup struct {
	// From is the first blob that is still needed, "" for all.
	From string `json:"from"`
}

func (q AddBackup) describe() (target, detail string) {
	return "", settings("sealed", q.Keys != "", "without_secrets", q.DropSecrets)
}

func (b Backup) describe() (target, detail string) { return b.ID, "" }

// heldBackups are those that this server began. Their leases end them.
type heldBackups struct {
	mu   sync.Mutex
	list map[string]*vfs.Backup
}

var errKeysByToken = fmt.Errorf("%w: secrets that are sealed with a key of the caller's leave through the admin socket only; "+
	"run the backup on the server, or without the secrets", apierr.ErrForbidden)

func (s *Server) addBackup(r *http.Request, _ httprouter.Params) (any, error) {
	var q AddBackup
	if err := decode(r, &q); err != nil {
		return nil, err
	}
	c := vfs.BackupConfig{DropSecrets: q.DropSecrets}
	if q.Keys != "" {
		if cameByToken(r) { // who chooses the key can open what it seals
			return nil, errKeysByToken
		}
		var err error
		if c.Keys, err = seal.Parse(q.Keys); err != nil {
			return nil, fmt.Errorf("%w: %w", apierr.ErrBadRequest, err)
		}
	}
	b, err := s.FS.BeginBackup(r.Context(), c)
	if err != nil {
		return nil, err
	}
	var id [8]byte
	rand.Read(id[:])
	out := Backup{ID: hex.EncodeToString(id[:]), BackupInfo: b.Info(), Version: s.Version}
	s.backups.mu.Lock()
	defer s.backups.mu.Unlock()
	for id, old := range s.backups.list {
		if old.Touch() != nil {
			delete(s.backups.list, id)
		}
	}
	if s.backups.list == nil {
		s.backups.list = make(map[string]*vfs.Backup)
	}
	s.backups.list[out.ID] = b
	return out, nil
}

func (s *Server) heldBackup(p httprouter.Params) (*vfs.Backup, error) {
	s.backups.mu.Lock()
	defer s.backups.mu.Unlock()
	if b := s.backups.list[p.ByName("id")]; b != nil {
		return b, nil
	}
	return nil, fmt.Errorf("%w: it is not known here: the process was started anew", vfs.ErrBackupEnded)
}

func (s *Server) useBackup(r *http.Request, p httprouter.Params) (any, error) {
	var q UseBackup
	if err := decode(r, &q); err != nil {
		return nil, err
	}
	b, err := s.heldBackup(p)
	if err != nil {
		return nil, err
	}
	if q.From == "" {
		return struct{}{}, b.Touch()
	}
	id, err := parseBlobID(q.From)
	if err != nil {
		return nil, err
	}
	return struct{}{}, b.Release(id)
}

func (s *Server) removeBackup(_ *http.Request, p httprouter.Params) (any, error) {
	b, err := s.heldBackup(p)
	if err != nil {
		return nil, err
	}
	b.Close()
	s.backups.mu.Lock()
	defer s.backups.mu.Unlock()
	delete(s.backups.list, p.ByName("id"))
	return Backup{ID: p.ByName("id")}, nil
}

func parseBlobID(name string) (cluster.BlobID, error) {
	raw, err := hex.DecodeString(name)
	if err == nil {
		var id cluster.BlobID
		if id, err = cluster.ParseBlobID(raw); err == nil {
			return id, nil
		}
	}
	return cluster.BlobID{}, fmt.Errorf("%w: %q is no blob: it is named by 32 hexadecimal digits", apierr.ErrBadRequest, name)
}

// stream answers with what fn writes.
func (s *Server) stream(op string, fn func(r *http.Request, p httprouter.Params, w *streamWriter) (end any, err error)) httprouter.Handle {
	return func(w http.ResponseWriter, r *http.Request, p httprouter.Params) {
		httpapi.Note(r.Context(), op, operator, nil)
		tellPath(r, p)
		r.Body = http.MaxBytesReader(w, r.Body, maxRequestBytes)
		w.Header().Set("Content-Type", "application/octet-stream")
		out := &streamWriter{Writer: bufio.NewWriterSize(w, streamBufferBytes)}
		end, err := fn(r, p, out)
		if err != nil {
			httpapi.Note(r.Context(), "", "", err)
			_ = out.record(streamError, []byte(err.Error()))
			_ = out.Flush() // the client may be gone
			return
		}
		body, _ := json.Marshal(end)
		_ = out.record(streamEnd, body)
		_ = out.Flush()
	}
}

// pairsEnd ends a page of pairs.
type pairsEnd struct {
	Secrets vfs.BackupSecrets `json:"secrets"` // so far
	Next    string            `json:"next"`    // where the next one begins; "": nowhere
}

func (s *Server) streamPairs(r *http.Request, p httprouter.Params, w *streamWriter) (any, error) {
	b, err := s.heldBackup(p)
	if err != nil {
		return nil, err
	}
	from, err := hex.DecodeString(r.URL.Query().Get("from"))
	if err != nil {
		return nil, fmt.Errorf("%w: from is not hexadecimal", apierr.ErrBadRequest)
	}
	next, err := b.Pairs(r.Context(), from,
		func(k, v []byte) error { return w.record(streamPair, k, v) },
		func(x vfs.BackupBlob) error {
			_ = w.WriteByte(streamBlob)
			_, _ = w.Write(x.ID.Append(nil))
			_, _ = w.Write(binary.AppendUvarint(nil, uint64(x.Size)))
			_, err := w.Write(binary.BigEndian.AppendUint64(nil, x.CRC))
			return err
		})
	return pairsEnd{b.Secrets(), hex.EncodeToString(next)}, err
}

func (s *Server) streamBlobs(r *http.Request, p httprouter.Params, w *streamWriter) (any, error) {
	b, err := s.heldBackup(p)
	if err != nil {
		return nil, err
	}
	var q backupBlobs
	if err := decode(r, &q); err != nil {
		return nil, err
	}
	if len(q.Blobs) > MaxBackupBlobs {
		return nil, fmt.Errorf("%w: more than %d blobs", apierr.ErrBadRequest, MaxBackupBlobs)
	}
	buf := make([]byte, streamBufferBytes)
	for _, x := range q.Blobs {
		id, err := parseBlobID(x.ID)
		if err != nil {
			return nil, err
		}
		out := blobRecords{w: w}
		switch err := b.ReadBlob(r.Context(), id, x.Size, &out, buf); {
		case out.err != nil:
			return nil, out.err
		case err == nil:
			err = w.record(streamDone)
			if err != nil {
				return nil, err
			}
		case errors.Is(err, vfs.ErrBlobDeleted):
			if err := w.record(streamGone); err != nil {
				return nil, err
			}
		case errors.Is(err, vfs.ErrCorrupt):
			if err := w.record(streamSkip, []byte(err.Error())); err != nil {
				return nil, err
			}
		default:
			return nil, err
		}
	}
	return struct{}{}, nil
}

// blobRecords writes what it gets as records.
type blobRecords struct {
	w   *streamWriter
	err error
}

// Write implements io.Writer.
func (b *blobRecords) Write(p []byte) (int, error) {
	if b.err = b.w.record(streamData, p); b.err != nil {
		return 0, b.err
	}
	return len(p), nil
}

// AddBackup makes the process hold an instant.
func (c *Client) AddBackup(ctx context.Context, q AddBackup) (Backup, error) {
	return ask[Backup](ctx, c, "POST", "/v1/backups", nil, q)
}

// UseBackup keeps it.
func (c *Client) UseBackup(ctx context.Context, id string, q UseBackup) error {
	_, err := ask[struct{}](ctx, c, "POST", "/v1/backups/"+id+"/use", nil, q)
	return err
}

// RemoveBackup lets it go.
func (c *Client) RemoveBackup(ctx context.Context, id string) error {
	_, err := ask[Backup](ctx, c, "DELETE", "/v1/backups/"+id, nil, nil)
	return err
}

func (c *Client) readStream(ctx context.Context, method, path string, in any) (*streamReader, error) {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(b)
	}
	resp, err := c.send(ctx, method, c.base+path, body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 {
		defer resp.Body.Close() //nolint:errcheck // it was read
		b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes))
		if err != nil {
			return nil, fmt.Errorf("read the answer: %w", err)
		}
		return nil, refusal(resp, b)
	}
	return &streamReader{bufio.NewReaderSize(resp.Body, streamBufferBytes), resp.Body}, nil
}

// BackupPage is a part of the metadata of a backup.
type BackupPage struct {
	Keys, Values [][]byte
	Blobs        []vfs.BackupBlob
	Next         string // where the next one begins; "": nowhere
	Secrets      vfs.BackupSecrets
}

// BackupPairs returns the page that begins at from, "" for the first.
func (c *Client) BackupPairs(ctx context.Context, id, from string) (*BackupPage, error) {
	r, err := c.readStream(ctx, "GET", "/v1/backups/"+id+"/pairs?from="+from, nil)
	if err != nil {
		return nil, err
	}
	defer r.close()
	page := new(BackupPage)
	for {
		more, err := r.pair(page)
		if err != nil {
			return nil, err
		}
		if !more {
			return page, nil
		}
	}
}

// pair adds the next record to page; false at the end.
func (r *streamReader) pair(page *BackupPage) (more bool, err error) {
	kind, err := r.next()
	if err != nil {
		return false, err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w: %w", errBroken, err)
		}
	}()
	switch kind {
	case streamPair:
		k, err := r.bytes()
		if err != nil {
			return false, err
		}
		v, err := r.bytes()
		page.Keys, page.Values = append(page.Keys, k), append(page.Values, v)
		return true, err
	case streamBlob:
		var head [cluster.BlobIDBytes]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return false, err
		}
		var x vfs.BackupBlob
		x.ID, _ = cluster.ParseBlobID(head[:]) // it has its length
		size, err := binary.ReadUvarint(r)
		if err != nil {
			return false, err
		}
		if size > cluster.MaxBlobBytes {
			return false, fmt.Errorf("blob %v of %d bytes", x.ID, size)
		}
		x.Size = int64(size)
		_, err = io.ReadFull(r, head[:8])
		x.CRC = binary.BigEndian.Uint64(head[:])
		page.Blobs = append(page.Blobs, x)
		return true, err
	case streamEnd:
		b, err := r.bytes()
		if err != nil {
			return false, err
		}
		var end pairsEnd
		err = json.Unmarshal(b, &end)
		page.Next, page.Secrets = end.Next, end.Secrets
		return false, err
	}
	return false, fmt.Errorf("a record of kind %q", kind)
}

// BackupBlobs reads blobs, at most MaxBackupBlobs, in their order: data gets
// their bytes, and then done why one cannot be read (nil: it was;
// vfs.ErrBlobDeleted: no file has it).
func (c *Client) BackupBlobs(ctx context.Context, id string, list []vfs.BackupBlob, data func(i int, p []byte) error, done func(i int, damage error) error) error {
	var q backupBlobs
	for _, b := range list {
		q.Blobs = append(q.Blobs, backupBlob{b.ID.String(), b.Size})
	}
	r, err := c.readStream(ctx, "POST", "/v1/backups/"+id+"/blobs", q)
	if err != nil {
		return err
	}
	defer r.close()
	for i := 0; ; {
		kind, err := r.next()
		if err != nil {
			return err
		}
		if i == len(list) && kind != streamEnd {
			return fmt.Errorf("%w: a record of kind %q behind the last blob", errBroken, kind)
		}
		switch kind {
		case streamData, streamSkip:
			b, err := r.bytes()
			if err != nil {
				return fmt.Errorf("%w: %w", errBroken, err)
			}
			if kind == streamData {
				err = data(i, b)
			} else {
				err = done(i, errors.New(string(b)))
				i++
			}
			if err != nil {
				return err
			}
		case streamDone, streamGone:
			var why error
			if kind == streamGone {
				why = vfs.ErrBlobDeleted
			}
			if err := done(i, why); err != nil {
				return err
			}
			i++
		case streamEnd:
			if i < len(list) {
				return fmt.Errorf("%w: %d of %d blobs came", errBroken, i, len(list))
			}
			return nil
		default:
			return fmt.Errorf("%w: a record of kind %q", errBroken, kind)
		}
	}
}

// BackupKeepAlive is how often a backup that waits for something else must be
// used.
const BackupKeepAlive = vfs.BackupLease / 4
