package record

import "ogw/cluster"

// Link is one link of a file.
type Link struct {
	Parent Ino
	Name   string
}

// Links returns what the 'l' keys of ino say: every link of an inode with
// more than one.
func Links(r cluster.Reader, ino Ino) (links []Link, err error) {
	prefix := LinkPrefix(ino)
	err = r.Scan(prefix, cluster.PrefixEnd(prefix), cluster.ScanOptions{KeysOnly: true}, func(k, _ []byte) error {
		parent, name, err := ParseLinkKey(k)
		links = append(links, Link{parent, name})
		return err
	})
	return links, err
}
