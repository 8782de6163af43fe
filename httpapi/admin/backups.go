package admin

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

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

// UseBackup keeps a backup in use, and says how far it has got.
type UseBackup struct {
	// From is the first blob that is still needed, "" for all.
	From string `json:"from"`
}

func (q AddBackup) describe() (target, detail string) {
	return "", settings("sealed", q.Keys != "", "without_secrets", q.DropSecrets)
}

func (b Backup) describe() (target, detail string) { return b.ID, "" }

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
	b, err := s.fs.BeginBackup(r.Context(), c)
	if err != nil {
		return nil, err
	}
	var id [8]byte
	rand.Read(id[:])
	out := Backup{ID: hex.EncodeToString(id[:]), BackupInfo: b.Info(), Version: s.Version}
	s.backups.mu.Lock()
	defer s.backups.mu.Unlock()
	for id, old := range s.backups.list {
		if old.Ended() {
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

// BackupKeepAlive is how often a backup that waits for something else must be
// used.
const BackupKeepAlive = vfs.BackupLease / 4
