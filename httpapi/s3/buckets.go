package s3

import (
	"encoding/xml"
	"net/http"
	"strconv"

	"ogw/vfs"
)

// maxBucketsPage is the most buckets of one ListBuckets (S3), and what is
// returned without paging.
const maxBucketsPage = 10000

// listBuckets is ListBuckets: the caller's buckets; all for administrators.
func (q *request) listBuckets() error {
	limit := maxBucketsPage
	if v := q.q.Get("max-buckets"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 || n > maxBucketsPage {
			return invalidArgument("max-buckets", v, "Argument max-buckets must be an integer between 1 and 10000.")
		}
		limit = n
	}
	prefix := q.q.Get("prefix")
	if region := q.q.Get("bucket-region"); region != "" && region != q.region() {
		limit = 0 // all buckets are in one region
	}
	after, err := decodeToken(q.q.Get("continuation-token"))
	if err != nil {
		return err
	}
	buckets, more, err := q.ownBuckets(prefix, after, limit)
	if err != nil {
		return err
	}
	var x xmlWriter
	x.start("ListAllMyBucketsResult", xmlNamespace)
	x.owner("Owner", q.id.owner())
	x.open("Buckets")
	for _, b := range buckets {
		x.open("Bucket")
		x.str("Name", b.Name)
		x.time("CreationDate", b.Created)
		x.str("BucketRegion", q.region())
		x.end("Bucket")
	}
	x.end("Buckets")
	x.opt("Prefix", prefix)
	if more {
		x.str("ContinuationToken", encodeToken(buckets[len(buckets)-1].Name))
	}
	x.end("ListAllMyBucketsResult")
	return q.sendPage(&x)
}

// ownBuckets returns up to limit of the caller's buckets behind after.
func (q *request) ownBuckets(prefix, after string, limit int) (out []vfs.BucketInfo, more bool, err error) {
	for limit > 0 {
		page, err := q.fs.ListBuckets(q.ctx, after, maxPage)
		if err != nil || len(page) == 0 {
			return out, false, err
		}
		for _, b := range page {
			after = b.Name
			if len(b.Name) < len(prefix) || b.Name[:len(prefix)] != prefix {
				continue
			}
			if len(out) == limit {
				return out, true, nil
			}
			out = append(out, b)
		}
	}
	return nil, false, nil
}

type createBucketXML struct {
	XMLName  xml.Name `xml:"CreateBucketConfiguration"`
	Location string   `xml:"LocationConstraint"`
	Tags     []tag    `xml:"Tags>Tag"`
}

// createBucket is CreateBucket.
func (q *request) createBucket() error {
	if err := refuseHeaders(q.r.Header); err != nil {
		return err
	}
	a, err := q.headerACL(q.r.Header, aclTarget{owner: q.id.owner()})
	if err != nil {
		return err
	}
	var doc createBucketXML // may be left out
	if err := q.readXML(configBounds, &doc); err != nil && !isCode(err, codeMissingRequestBody) {
		return err
	}
	if doc.Location != "" && doc.Location != q.region() && q.cfg.Region != "" {
		return newError(codeIllegalLocation).with("LocationConstraint", doc.Location)
	}
	with := vfs.BucketOptions{Grants: a}
	if with.Ownership, err = ownershipHeader(q.r.Header); err != nil {
		return err
	}
	if len(doc.Tags) > 0 {
		if err := checkTags(doc.Tags, maxBucketTags); err != nil {
			return err
		}
		with.Config = map[string][]byte{bucketTags: []byte(encodeTags(doc.Tags))}
	}
	if _, err := q.fs.CreateBucketWith(q.ctx, q.name.Bucket, q.id.cred(), with); err != nil {
		return err
	}
	q.w.Header().Set("Location", "/"+q.name.Bucket)
	q.w.WriteHeader(http.StatusOK)
	return nil
}

// headBucket is HeadBucket.
func (q *request) headBucket() error {
	if _, err := q.fs.HeadBucket(q.ctx, q.name.Bucket); err != nil {
		return err
	}
	q.w.Header().Set("X-Amz-Bucket-Region", q.region())
	q.w.Header().Set("Content-Type", "application/xml")
	q.w.WriteHeader(http.StatusOK)
	return nil
}

// deleteBucket is DeleteBucket.
func (q *request) deleteBucket() error {
	if err := q.fs.DeleteBucket(q.ctx, q.name.Bucket); err != nil {
		return err
	}
	q.w.WriteHeader(http.StatusNoContent)
	return nil
}

// getBucketLocation is GetBucketLocation; us-east-1 is written as nothing.
func (q *request) getBucketLocation() error {
	if _, err := q.fs.HeadBucket(q.ctx, q.name.Bucket); err != nil {
		return err
	}
	region := q.region()
	if region == "us-east-1" {
		region = ""
	}
	var x xmlWriter
	x.start("LocationConstraint", xmlNamespace)
	x.b = appendEscaped(x.b, region)
	x.end("LocationConstraint")
	x.send(q.w, q.r, http.StatusOK)
	return nil
}
