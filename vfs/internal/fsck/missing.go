package fsck

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"ogw/cluster"
	"ogw/vfs/internal/record"
)

var errNoBlob = errors.New("the blob does not exist")

// lose takes note of a missing blob. More than can be listed are counted.
func (c *checker) lose(x missingBlob) {
	if c.parts[x.id] {
		return // just reported
	}
	if len(c.missing) == MaxProblems {
		c.rep.Dropped++
		return
	}
	if x.damage == nil {
		x.damage = errNoBlob
	}
	c.missing = append(c.missing, x)
	if x.part != 0 {
		c.parts[x.id] = true
	}
}

// checkMissing reports the missing blobs with the files or parts that use them, but not
// those that the quarantine has, or whose files were all reported: that was
// just done. Nothing is changed because of them.
func (c *checker) checkMissing() error {
	c.missing = slices.DeleteFunc(c.missing, func(x missingBlob) bool {
		rec := c.Blobs.Get(x.id)
		return x.part == 0 && rec != nil && !rec.Aside
	})
	if len(c.missing) == 0 {
		return nil
	}
	slices.SortFunc(c.missing, func(a, b missingBlob) int { return bytes.Compare(a.id.Append(nil), b.id.Append(nil)) })
	users := make(map[cluster.BlobID][]record.Ino)
	for _, x := range c.missing {
		if x.part == 0 {
			users[x.id] = nil
		}
	}
	if err := c.Blobs.Files.Users(c.ctx, users); err != nil {
		return err
	}
	for _, x := range c.missing {
		inodes := users[x.id]
		if c.reported(inodes) {
			continue
		}
		var files []string
		if x.part != 0 {
			files = append(files, partText(c.ctx, c.Store, c.Blobs.Files, x.content, x.part))
		}
		for _, ino := range inodes {
			files = append(files, c.fileText(ino))
		}
		c.add(Problem{Kind: "missing-blob", Detail: fmt.Sprintf("%s: blob %v of %d bytes: %v", filesText(files), x.id, x.size, x.damage)})
	}
	return nil
}
