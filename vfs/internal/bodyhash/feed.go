package bodyhash

import (
	"context"
	"errors"
	"fmt"
	"io"

	"ogw/vfs/internal/fserr"
)

// Feed writes a range of what is stored to w, a hash.
func Feed(ctx context.Context, r io.ReaderAt, off, length int64, w io.Writer) error {
	buf := make([]byte, min(length, BufferBytes))
	for length > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		p := buf[:min(length, int64(len(buf)))]
		n, err := r.ReadAt(p, off)
		if n < len(p) {
			if err == nil || errors.Is(err, io.EOF) {
				err = fmt.Errorf("%w: content ends early", fserr.ErrIO)
			}
			return err
		}
		_, _ = w.Write(p)
		off, length = off+int64(n), length-int64(n)
	}
	return nil
}
