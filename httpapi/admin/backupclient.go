package admin

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"ogw/cluster"
	"ogw/vfs"
)

// AddBackup makes the process hold an instant.
func (c *Client) AddBackup(ctx context.Context, q AddBackup) (Backup, error) {
	return ask[Backup](ctx, c, "POST", "/v1/backups", q)
}

// UseBackup keeps it.
func (c *Client) UseBackup(ctx context.Context, id string, q UseBackup) error {
	_, err := ask[struct{}](ctx, c, "POST", "/v1/backups/"+id+"/use", q)
	return err
}

// RemoveBackup lets it go.
func (c *Client) RemoveBackup(ctx context.Context, id string) error {
	_, err := ask[Backup](ctx, c, "DELETE", "/v1/backups/"+id, nil)
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
