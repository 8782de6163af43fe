// Package locate reports who holds which bytes of a file.
package locate

import (
	"bytes"
	"context"
	"fmt"

	"ogw/cluster"
	"ogw/vfs/internal/content"
	"ogw/vfs/internal/fserr"
)

// Extent is where one range of a file is.
type Extent struct {
	Off, Len int64
	Kind     string             // "inline", "blob", "hole", "unflushed"
	Blob     string             // hexadecimal blob ID
	Nodes    []cluster.Location // empty for inline data: it is in the metadata
}

// End is the offset behind it.
func (e *Extent) End() int64 { return e.Off + e.Len }

// Range of a file.
type Range struct{ Off, Len int64 }

// Stored is where the bytes of a content are.
func Stored(ctx context.Context, blobs cluster.Blobs, rd *content.Reader) (list []Extent, err error) {
	var lastBlob cluster.BlobID
	var lastNodes []cluster.Location
	for off := int64(0); off < rd.Size(); {
		p, err := rd.Page(ctx, off)
		if err != nil {
			return nil, err
		}
		for i := p.Find(off); i < len(p.Segs); i++ {
			s := &p.Segs[i]
			list = appendHole(list, off, s.Off)
			x := Extent{Off: s.Off, Len: s.Len, Kind: "inline"}
			if s.Data == nil {
				x.Kind, x.Blob = "blob", s.Blob.String()
				if s.Blob != lastBlob {
					if lastNodes, err = blobs.Locate(ctx, s.Blob); err != nil {
						return nil, fserr.Map(err)
					}
					lastBlob = s.Blob
				}
				x.Nodes = lastNodes
			}
			list = append(list, x)
			off = s.End()
		}
		list = appendHole(list, off, p.To)
		off = p.To
	}
	return list, nil
}

func appendHole(list []Extent, from, to int64) []Extent {
	if from >= to {
		return list
	}
	if k := len(list) - 1; k >= 0 && list[k].Kind == "hole" {
		list[k].Len = to - list[k].Off
		return list
	}
	return append(list, Extent{Off: from, Len: to - from, Kind: "hole"})
}

// Cover puts ranges that are not flushed, in order, over what is stored.
func Cover(stored []Extent, unflushed []Range) (list []Extent) {
	var at int64
	next := 0
	// below copies what is stored up to an offset.
	below := func(to int64) {
		for at < to {
			for next < len(stored) && stored[next].End() <= at {
				next++
			}
			if next == len(stored) {
				list = appendHole(list, at, to)
				at = to
				return
			}
			x := stored[next]
			x.Len = min(x.End(), to) - at
			x.Off = at
			list = append(list, x)
			at = x.End()
		}
	}
	for _, p := range unflushed {
		below(p.Off)
		if k := len(list) - 1; k >= 0 && list[k].Kind == "unflushed" && list[k].End() == p.Off {
			list[k].Len += p.Len
		} else {
			list = append(list, Extent{Off: p.Off, Len: p.Len, Kind: "unflushed"})
		}
		at = p.Off + p.Len
	}
	if k := len(stored); k > 0 {
		below(stored[k-1].End())
	}
	return list
}

// Format writes one line for each holder of each extent, up to max bytes. What would
// be beyond is left out, and the last line reports that.
func Format(list []Extent, max int) []byte {
	const rest = "...\n"
	var b bytes.Buffer
	for i := range list {
		size := b.Len()
		x := &list[i]
		head := fmt.Sprintf("%d+%d %s", x.Off, x.Len, x.Kind)
		if len(x.Nodes) == 0 {
			fmt.Fprintf(&b, "%s\n", head)
		}
		for _, n := range x.Nodes {
			fmt.Fprintf(&b, "%s %s", head, x.Blob)
			for _, s := range [...]string{n.Node, n.Address, n.Path, n.Detail} {
				if s != "" {
					fmt.Fprintf(&b, " %s", s)
				}
			}
			b.WriteByte('\n')
		}
		if b.Len() > max-len(rest) {
			b.Truncate(size)
			b.WriteString(rest)
			break
		}
	}
	return b.Bytes()
}
