package s3

// listVersions is ListObjectVersions: buckets have no versions, so each object
// is its only one, whose ID is "null".
func (q *request) listVersions() error {
	l, err := q.newListing(true)
	if err != nil {
		return err
	}
	marker, version := q.q.Get("key-marker"), q.q.Get("version-id-marker")
	switch {
	case version != "" && marker == "":
		return invalidArgument("version-id-marker", version, "A version-id marker cannot be specified without a key marker.")
	case version != "" && version != nullVersion:
		return invalidArgument("version-id-marker", version, "Invalid version id specified")
	}
	res, err := l.run(marker)
	if err != nil {
		return err
	}
	x := &l.x
	x.b = make([]byte, 0, 1024+380*len(res.Objects))
	x.start("ListVersionsResult", xmlNamespace)
	l.common(&res)
	x.str("KeyMarker", l.key(marker))
	x.str("VersionIdMarker", version)
	if res.Truncated {
		x.str("NextKeyMarker", l.key(res.Next))
		if n := len(res.Objects); n > 0 && res.Objects[n-1].Key == res.Next { // else it is a common prefix
			x.str("NextVersionIdMarker", nullVersion)
		}
	}
	for i := range res.Objects {
		x.open("Version")
		l.object(&res.Objects[i], func() {
			x.str("VersionId", nullVersion)
			x.bool("IsLatest", true)
		})
		x.end("Version")
	}
	x.prefixes(res.CommonPrefixes, l.key)
	x.end("ListVersionsResult")
	return q.sendPage(x)
}

// nullVersion is the ID of what was stored without versioning.
const nullVersion = "null"
