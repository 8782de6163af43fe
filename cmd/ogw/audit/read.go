package audit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxLine is more than any line has: of a damaged file, what is between
	// two ends of lines is left out from there on.
	maxLine = 64 << 10
	// pollEvery is how often a followed file is looked at.
	pollEvery = 200 * time.Millisecond
)

// Read calls each with the lines of a log, the oldest first, and raw as it is
// stored; what is not a line is left out. With follow it goes on until ctx
// ends, over rotations, too. An error of each ends it.
func Read(ctx context.Context, path string, keep int, follow bool, each func(raw []byte, l *Line) error) error {
	files, err := openAll(path, keep)
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	if err != nil {
		return err
	}
	for i, f := range files {
		last := i == len(files)-1
		r := &lineReader{br: bufio.NewReaderSize(f, maxLine), each: each}
		if err := r.all(); err != nil {
			return err
		}
		if !last || !follow {
			continue
		}
		if err := r.follow(ctx, f, path); err != nil {
			return err
		}
	}
	return nil
}

// openAll opens the files that there are, the oldest first. They are opened
// from the newest on, so that a rotation meanwhile makes one come twice and
// none be missed; what came twice is dropped.
func openAll(path string, keep int) (files []*os.File, err error) {
	for i := 0; i <= keep+1; i++ {
		f, err := os.OpenFile(Numbered(path, i), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return files, err
		}
		if slices.ContainsFunc(files, func(g *os.File) bool { return sameFile(f, g) }) {
			_ = f.Close()
			continue
		}
		files = append(files, f)
	}
	slices.Reverse(files)
	if len(files) == 0 {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return files, nil
}

func sameFile(a, b *os.File) bool {
	x, errX := a.Stat()
	y, errY := b.Stat()
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// lineReader cuts a file into lines.
type lineReader struct {
	br   *bufio.Reader
	part []byte // of a line that is being written
	each func(raw []byte, l *Line) error
}

// all reads to the end of what is there.
func (r *lineReader) all() error {
	for {
		piece, err := r.br.ReadSlice('\n')
		if len(r.part)+len(piece) <= maxLine {
			r.part = append(r.part, piece...)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return err
		}
		raw := bytes.TrimSpace(r.part)
		r.part = r.part[:0]
		var l Line
		if json.Unmarshal(raw, &l) != nil {
			continue
		}
		if err := r.each(raw, &l); err != nil {
			return err
		}
	}
}

// follow waits for more, in the file that takes the place of f, too.
func (r *lineReader) follow(ctx context.Context, f *os.File, path string) error {
	var own *os.File // opened here
	defer func() { _ = closeIf(own) }()
	for {
		next, renamed := replacement(f, path)
		// Read after the look: what was written before the rename is there.
		if err := r.all(); err != nil {
			return errors.Join(err, closeIf(next))
		}
		if renamed {
			_ = closeIf(own)
			f, own = next, next
			r.br.Reset(f)
			r.part = r.part[:0]
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pollEvery):
		}
	}
}

// replacement opens the file at path if it is another than f.
func replacement(f *os.File, path string) (next *os.File, renamed bool) {
	next, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, false // between a rename and a new file
	}
	if sameFile(f, next) {
		_ = next.Close()
		return nil, false
	}
	return next, true
}

func closeIf(f *os.File) error {
	if f == nil {
		return nil
	}
	return f.Close()
}
