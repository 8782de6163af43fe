package s3

import (
	"encoding/xml"
	"net/http"

	"ogw/httpapi"
	"ogw/vfs"
)

const (
	ownerPays     = "BucketOwner"
	requesterPays = "Requester"
)

type requestPaymentXML struct {
	XMLName xml.Name `xml:"RequestPaymentConfiguration"`
	Payer   string   `xml:"Payer"`
}

// putRequestPayment is PutBucketRequestPayment. Nothing is charged here: the requester has
// to say that they would pay.
func (q *request) putRequestPayment() error {
	var doc requestPaymentXML
	if err := q.readXML(configBounds, &doc); err != nil {
		return err
	}
	if doc.Payer != ownerPays && doc.Payer != requesterPays {
		return newError(codeMalformedXML)
	}
	httpapi.NoteText(q.ctx, "payer", doc.Payer)
	if err := q.fs.SetRequesterPays(q.ctx, q.name.Bucket, doc.Payer == requesterPays); err != nil {
		return err
	}
	q.w.WriteHeader(http.StatusOK)
	return nil
}

// getRequestPayment is GetBucketRequestPayment.
func (q *request) getRequestPayment() error {
	v, err := q.fs.BucketConfig(q.ctx, q.name.Bucket, vfs.PayerConfig)
	if err != nil {
		return err
	}
	payer := ownerPays
	if v != nil {
		payer = requesterPays
	}
	var x xmlWriter
	x.start("RequestPaymentConfiguration", xmlNamespace)
	x.str("Payer", payer)
	x.end("RequestPaymentConfiguration")
	x.send(q.w, q.r, http.StatusOK)
	return nil
}

// charge confirms to a requester who agreed to pay for the request that they do.
func (q *request) charge() {
	if httpapi.Field(q.r.Header, "X-Amz-Request-Payer") == "" || q.name.Bucket == "" || q.id.anonymous() {
		return
	}
	v, err := q.fs.BucketConfig(q.r.Context(), q.name.Bucket, vfs.PayerConfig) // for the door itself
	if err != nil || v == nil {
		return
	}
	if info, err := q.fs.HeadBucket(q.r.Context(), q.name.Bucket); err == nil && info.UID != q.id.user.UID {
		q.w.Header().Set("X-Amz-Request-Charged", "requester")
	}
}
