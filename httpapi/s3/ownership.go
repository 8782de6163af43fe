package s3

import (
	"encoding/xml"
	"net/http"

	"ogw/httpapi"
	"ogw/vfs"
)

// ownershipHeaderName says at CreateBucket who will own what others write.
const ownershipHeaderName = "X-Amz-Object-Ownership"

var codeNoSuchOwnership = code{"OwnershipControlsNotFoundError", 404, "The bucket ownership controls were not found"}

// ownershipNames are S3's words.
var ownershipNames = map[vfs.Ownership]string{
	vfs.OwnershipWriter: "ObjectWriter", vfs.OwnershipPreferred: "BucketOwnerPreferred", vfs.OwnershipEnforced: "BucketOwnerEnforced",
}

func parseOwnership(name string) (vfs.Ownership, bool) {
	for own, n := range ownershipNames {
		if n == name {
			return own, true
		}
	}
	return vfs.OwnershipUnset, false
}

func ownershipHeader(h http.Header) (vfs.Ownership, error) {
	v := h.Get(ownershipHeaderName)
	own, ok := parseOwnership(v)
	if v != "" && !ok {
		return own, invalidArgument("x-amz-object-ownership", v, "Invalid x-amz-object-ownership header: "+v)
	}
	return own, nil
}

type ownershipXML struct {
	XMLName xml.Name `xml:"OwnershipControls"`
	Rules   []struct {
		Ownership string `xml:"ObjectOwnership"`
	} `xml:"Rule"`
}

// putOwnership is PutBucketOwnershipControls.
func (q *request) putOwnership() error {
	var doc ownershipXML
	if err := q.readXML(configBounds, &doc); err != nil {
		return err
	}
	if len(doc.Rules) != 1 {
		return newError(codeMalformedXML)
	}
	name := doc.Rules[0].Ownership
	own, ok := parseOwnership(name)
	if !ok {
		return newError(codeMalformedXML)
	}
	httpapi.NoteText(q.ctx, "ownership", name)
	return q.setOwnership(own, http.StatusOK)
}

// deleteOwnership is DeleteBucketOwnershipControls.
func (q *request) deleteOwnership() error {
	return q.setOwnership(vfs.OwnershipUnset, http.StatusNoContent)
}

func (q *request) setOwnership(own vfs.Ownership, status int) error {
	if err := q.fs.SetBucketOwnership(q.ctx, q.name.Bucket, own); err != nil {
		return err
	}
	q.w.WriteHeader(status)
	return nil
}

// getOwnership is GetBucketOwnershipControls.
func (q *request) getOwnership() error {
	own, err := q.fs.BucketOwnership(q.ctx, q.name.Bucket)
	if err != nil {
		return err
	}
	if own == vfs.OwnershipUnset {
		return newError(codeNoSuchOwnership).with("BucketName", q.name.Bucket)
	}
	var x xmlWriter
	x.start("OwnershipControls", xmlNamespace)
	x.open("Rule")
	x.str("ObjectOwnership", ownershipNames[own])
	x.end("Rule")
	x.end("OwnershipControls")
	x.send(q.w, q.r, http.StatusOK)
	return nil
}
