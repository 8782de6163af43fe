package fsck

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ogw/cluster"
	"ogw/vfs/internal/fserr"
	"ogw/vfs/internal/record"
)

// checkData reads every file and compares its checksum.
func (c *checker) checkData() error {
	from, to := record.Table(record.TabInode)
	for {
		var page []pair
		err := c.Store.View(c.ctx, func(r cluster.Reader) (err error) {
			page, err = readPairs(r, from, to, true)
			return err
		})
		if err != nil {
			return err
		}
		for _, p := range page {
			if err := c.checkBytes(record.InoOfKey(p.key)); err != nil {
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
func (c *checker) checkBytes(ino record.Ino) error {
	n, crc, err := c.Store.ReadFile(c.ctx, ino)
	var found findings
	switch {
	case c.ctx.Err() != nil:
		return context.Cause(c.ctx)
	case isStale(err): // changed concurrently
	case err != nil && !damaged(err): // it says nothing of the bytes
		return err
	case err != nil:
		c.corrupt[ino] = true
		found.add("corrupt-data", nil, "%s: %v", c.fileText(ino), err)
	case n.Content != 0 && n.Has(record.FlagCRC) && crc != n.CRC:
		found.add("checksum", nil, "%s: the bytes do not have the stored checksum", c.fileText(ino))
	}
	c.report(found)
	return nil
}

func isStale(err error) bool { return errors.Is(err, fserr.ErrStale) }

// fileText names a file for people.
func (c *checker) fileText(ino record.Ino) string {
	if key, err := c.Blobs.Files.KeyOf(c.ctx, ino); err == nil {
		return fmt.Sprintf("inode %d, %s", ino, key)
	}
	return fmt.Sprintf("inode %d", ino)
}

// reported reports whether the bytes of each of the files were found damaged.
func (c *checker) reported(files []record.Ino) bool {
	return len(files) > 0 && !slices.ContainsFunc(files, func(ino record.Ino) bool { return !c.corrupt[ino] })
}

func filesText(files []string) string {
	if len(files) == 0 {
		return "no file, as far as is known"
	}
	return strings.Join(files, ", ")
}

// checkQuarantine reports the damaged blobs that files use, unless each of the
// files was just reported; there is no second copy to mend them from. What is
// gone, or reads well, leaves the list. What the quarantine knows is stored as
// far as the store takes it: on one that takes no writes a check reads on.
func (c *checker) checkQuarantine() error {
	q := c.Blobs
	if err := q.Refresh(c.ctx); err != nil {
		return err
	}
	well, err := q.Recheck(c.ctx, c.o.Repair)
	if err != nil {
		return err
	}
	if err := q.Trace(c.ctx, true); err != nil {
		q.Log.Warn("the files of damaged blobs are not found, or not stored", "err", err)
	}
	list := q.List(c.ctx)
	var found findings
	for i := range list {
		switch d := &list[i]; {
		case d.Aside:
			c.rep.Aside++
			c.rep.AsideBytes += d.Size
		case !well[d.ID] && !c.parts[d.ID] && !c.reported(q.Inodes(d.ID)):
			found.add("damaged-blob", nil, "%s: blob %s of %d bytes, found by %s on %s: %s",
				filesText(d.Files), d.Blob, d.Size, d.By, d.Found.Format(time.RFC3339), d.Error)
		}
	}
	from, to := record.Table(record.TabDamaged)
	err = c.walk(from, to, true, func(_ cluster.Reader, page []pair, f *findings) error {
		for _, p := range page {
			if _, err := record.ParseDamagedKey(p.key); err != nil {
				f.add("quarantine-record", deleteKey(p.key), "%v", err)
			}
		}
		return nil
	})
	c.report(found)
	return err
}
