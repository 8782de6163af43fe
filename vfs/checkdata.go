package vfs

import (
	"context"
	"errors"
	"io"

	"ogw/cluster"

	"github.com/minio/crc64nvme"
)

// checkData reads every file and compares its checksum.
func (c *checker) checkData() error {
	from, to := table(tabInode)
	for {
		var page []pair
		err := c.fs.view(c.ctx, func(r cluster.Reader) (err error) {
			page, err = readPairs(r, from, to, true)
			return err
		})
		if err != nil {
			return err
		}
		for _, p := range page {
			if err := c.checkBytes(keyIno(p.key)); err != nil {
				return err
			}
		}
		if len(page) < checkPage {
			return nil
		}
		from = append(page[len(page)-1].key, 0)
	}
}

// checkBytes reads the whole content of an inode.
func (c *checker) checkBytes(ino Ino) error {
	var n *inode
	var rd *contentReader
	err := c.fs.view(c.ctx, func(r cluster.Reader) (err error) {
		if n, err = getInode(r, ino); err != nil || n.content == 0 {
			return err
		}
		rd, err = c.fs.openContent(c.ctx, r, n)
		return err
	})
	if err == nil && rd == nil || isStale(err) {
		return nil
	}
	var crc uint64
	if err == nil {
		defer rd.Close()
		crc, err = readCRC(c.ctx, rd)
	}
	var found findings
	switch {
	case c.ctx.Err() != nil:
		return context.Cause(c.ctx)
	case isStale(err): // changed meanwhile
	case err != nil:
		found.add("corrupt-data", nil, "inode %d: %v", ino, err)
	case n.has(flagCRC) && crc != n.crc:
		found.add("checksum", nil, "inode %d: the bytes do not have the stored checksum", ino)
	}
	c.report(found)
	return nil
}

func isStale(err error) bool { return errors.Is(err, ErrStale) }

func readCRC(ctx context.Context, rd *contentReader) (crc uint64, err error) {
	buf := make([]byte, min(rd.size, copyBufferBytes))
	h := crc64nvme.New()
	for off := int64(0); off < rd.size; {
		n, err := rd.readAt(ctx, buf, off)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		h.Write(buf[:n])
		off += int64(n)
	}
	return h.Sum64(), nil
}
