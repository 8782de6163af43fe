package httpapi

import "ogw/vfs"

// VFS returns the conditions in the store's terms.
func (c Conditions) VFS() vfs.Preconditions {
	return vfs.Preconditions{
		IfMatch: c.IfMatch.vfs(false), IfNoneMatch: c.IfNoneMatch.vfs(true),
		IfModifiedSince: c.IfModifiedSince, IfUnmodifiedSince: c.IfUnmodifiedSince,
	}
}

// neverMatches stands for weak tags in If-Match, which match nothing.
const neverMatches = "W/"

func (e ETags) vfs(weakly bool) []vfs.ETag {
	if e.Any {
		return []vfs.ETag{"*"}
	}
	var out []vfs.ETag
	for i, t := range e.Tags {
		if e.weak[i] && !weakly {
			t = neverMatches
		}
		out = append(out, vfs.ETag(t))
	}
	return out
}
