package s3

import (
	"encoding/base64"
	"strconv"

	"ogw/vfs"
)

// listing is what both versions of ListObjects share.
type listing struct {
	x       xmlWriter
	encode  bool // encoding-type=url
	prefix  string
	delim   string
	maxKeys int
	tokens  bool             // a token continues, else a key
	owners  map[uint32]owner // nil: do not show owners
	q       *request
}

func (q *request) newListing(fetchOwner bool) (*listing, error) {
	l := &listing{q: q, prefix: q.q.Get("prefix"), delim: q.q.Get("delimiter")}
	var err error
	if l.encode, err = q.urlEncoding(); err != nil {
		return nil, err
	}
	if l.maxKeys, err = q.pageSize("max-keys"); err != nil {
		return nil, err
	}
	if fetchOwner {
		l.owners = map[uint32]owner{}
	}
	return l, nil
}

// urlEncoding reads encoding-type.
func (q *request) urlEncoding() (bool, error) {
	switch v := q.q.Get("encoding-type"); v {
	case "":
		return false, nil
	case "url":
		return true, nil
	default:
		return false, invalidArgument("encoding-type", v, "Invalid Encoding Method specified in Request")
	}
}

// pageSize reads a limit of a listing; more than S3's maximum is the maximum.
func (q *request) pageSize(name string) (int, error) {
	v := q.q.Get(name)
	if v == "" {
		return maxPage, nil
	}
	n, err := strconv.ParseInt(v, 10, 32)
	if err != nil || n < 0 {
		return 0, invalidArgument(name, v, "Argument "+name+" must be an integer between 0 and 2147483647")
	}
	return int(min(n, maxPage)), nil
}

func (l *listing) key(s string) string {
	if l.encode {
		return urlEncode(s)
	}
	return s
}

// run lists; a page of no keys is empty and not truncated.
func (l *listing) run(after string) (vfs.ListResult, error) {
	if l.maxKeys == 0 {
		_, err := l.q.fs.HeadBucket(l.q.ctx, l.q.name.Bucket)
		return vfs.ListResult{}, err
	}
	return l.q.fs.ListObjects(l.q.ctx, l.q.name.Bucket, vfs.ListOptions{Prefix: l.prefix, Delimiter: l.delim, StartAfter: after, MaxKeys: l.maxKeys,
		Text: !l.encode && !l.tokens})
}

// common writes the elements that both versions have.
func (l *listing) common(res *vfs.ListResult) {
	x := &l.x
	x.str("Name", l.q.name.Bucket)
	x.str("Prefix", l.key(l.prefix))
	if l.delim != "" {
		x.str("Delimiter", l.key(l.delim))
	}
	x.int("MaxKeys", int64(l.maxKeys))
	if l.encode {
		x.str("EncodingType", "url")
	}
	x.bool("IsTruncated", res.Truncated)
}

func (l *listing) entries(res *vfs.ListResult) {
	x := &l.x
	for i := range res.Objects {
		x.open("Contents")
		l.object(&res.Objects[i], nil)
		x.end("Contents")
	}
	x.prefixes(res.CommonPrefixes, l.key)
}

// object writes the elements of one object; version, if not nil, those of its
// version.
func (l *listing) object(o *vfs.ObjectInfo, version func()) {
	x := &l.x
	x.str("Key", l.key(o.Key))
	if version != nil {
		version()
	}
	x.time("LastModified", o.Modified)
	x.etag(o.ETag)
	x.int("Size", o.Size)
	if l.owners != nil {
		x.owner("Owner", l.owner(o.UID))
	}
	x.str("StorageClass", storageClass(&o.Meta))
}

func (x *xmlWriter) prefixes(prefixes []string, encode func(string) string) {
	for _, p := range prefixes {
		x.open("CommonPrefixes")
		x.str("Prefix", encode(p))
		x.end("CommonPrefixes")
	}
}

func (l *listing) owner(uid uint32) owner {
	o, ok := l.owners[uid]
	if !ok {
		o = l.q.ownerOf(uid)
		l.owners[uid] = o
	}
	return o
}

// listObjects is ListObjects, version 1.
func (q *request) listObjects() error {
	l, err := q.newListing(true)
	if err != nil {
		return err
	}
	marker := q.q.Get("marker")
	res, err := l.run(marker)
	if err != nil {
		return err
	}
	x := &l.x
	x.b = make([]byte, 0, 1024+320*len(res.Objects))
	x.start("ListBucketResult", xmlNamespace)
	l.common(&res)
	x.str("Marker", l.key(marker))
	if n := len(res.Objects); res.Truncated && (l.delim != "" || n == 0 || res.Objects[n-1].Key != res.Next) {
		x.str("NextMarker", l.key(res.Next))
	}
	l.entries(&res)
	x.end("ListBucketResult")
	return q.sendPage(x)
}

// listObjectsV2 is ListObjectsV2.
func (q *request) listObjectsV2() error {
	if v := q.q.Get("list-type"); v != "2" {
		return invalidArgument("list-type", v, "Only list-type 2 is known.")
	}
	l, err := q.newListing(q.q.Get("fetch-owner") == "true")
	if err != nil {
		return err
	}
	l.tokens = true
	startAfter, token := q.q.Get("start-after"), q.q.Get("continuation-token")
	if token == "" && q.q.Has("continuation-token") {
		return invalidArgument("continuation-token", "", "The continuation token provided is incorrect")
	}
	after, err := decodeToken(token)
	if err != nil {
		return err
	}
	if token == "" {
		after = startAfter
	}
	res, err := l.run(after)
	if err != nil {
		return err
	}
	x := &l.x
	x.b = make([]byte, 0, 1024+256*len(res.Objects))
	x.start("ListBucketResult", xmlNamespace)
	l.common(&res)
	x.int("KeyCount", int64(len(res.Objects)+len(res.CommonPrefixes)))
	x.opt("ContinuationToken", token)
	x.opt("StartAfter", l.key(startAfter))
	if res.Truncated {
		x.str("NextContinuationToken", encodeToken(res.Next))
	}
	l.entries(&res)
	x.end("ListBucketResult")
	return q.sendPage(x)
}

// tokenPrefix versions the continuation tokens, which clients must not read.
// A token names the last key that was looked at: it has at most some 2,800
// characters, because no directory with a longer path is looked into.
const tokenPrefix = "1"

func encodeToken(next string) string {
	return tokenPrefix + base64.RawURLEncoding.EncodeToString([]byte(next))
}

func decodeToken(token string) (string, error) {
	if token == "" {
		return "", nil
	}
	b, err := base64.RawURLEncoding.DecodeString(token[len(tokenPrefix):])
	if err != nil || token[:len(tokenPrefix)] != tokenPrefix {
		return "", invalidArgument("continuation-token", token, "The continuation token provided is incorrect")
	}
	return string(b), nil
}
