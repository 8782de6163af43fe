package s3

import (
	"encoding/xml"
	"net/http"
	"strconv"

	"ogw/httpapi"
	"ogw/vfs"
)

// accessBlockXML is PublicAccessBlockConfiguration; what it does not name is off.
type accessBlockXML struct {
	XMLName          xml.Name `xml:"PublicAccessBlockConfiguration"`
	BlockACLs        bool     `xml:"BlockPublicAcls"`
	IgnoreACLs       bool     `xml:"IgnorePublicAcls"`
	BlockPolicies    bool     `xml:"BlockPublicPolicy"`
	RestrictPolicies bool     `xml:"RestrictPublicBuckets"`
}

// blockBit is a setting with its name and its value.
type blockBit struct {
	name string
	bit  vfs.AccessBlock
	on   bool
}

func (b *accessBlockXML) bits() []blockBit {
	return []blockBit{{"BlockPublicAcls", vfs.BlockPublicACLs, b.BlockACLs}, {"IgnorePublicAcls", vfs.IgnorePublicACLs, b.IgnoreACLs},
		{"BlockPublicPolicy", vfs.BlockPublicPolicies, b.BlockPolicies}, {"RestrictPublicBuckets", vfs.RestrictPublicBuckets, b.RestrictPolicies}}
}

// putAccessBlock is PutPublicAccessBlock.
func (q *request) putAccessBlock() error {
	var doc accessBlockXML
	if err := q.readXML(configBounds, &doc); err != nil {
		return err
	}
	var block vfs.AccessBlock
	for _, b := range doc.bits() {
		if b.on {
			block |= b.bit
		}
	}
	for _, b := range doc.bits() {
		httpapi.NoteText(q.ctx, b.name, strconv.FormatBool(b.on))
	}
	return q.setConfig(vfs.AccessBlockConfig, []byte{byte(block)}, http.StatusOK)
}

// getAccessBlock is GetPublicAccessBlock.
func (q *request) getAccessBlock() error {
	v, err := q.fs.BucketConfig(q.ctx, q.name.Bucket, vfs.AccessBlockConfig)
	if err != nil {
		return err
	}
	if len(v) != 1 {
		return newError(codeNoSuchAccessBlock).with("BucketName", q.name.Bucket)
	}
	var x xmlWriter
	x.start("PublicAccessBlockConfiguration", xmlNamespace)
	for _, b := range (&accessBlockXML{}).bits() {
		x.bool(b.name, vfs.AccessBlock(v[0])&b.bit != 0)
	}
	x.end("PublicAccessBlockConfiguration")
	x.send(q.w, q.r, http.StatusOK)
	return nil
}

// deleteAccessBlock is DeletePublicAccessBlock.
func (q *request) deleteAccessBlock() error {
	return q.setConfig(vfs.AccessBlockConfig, nil, http.StatusNoContent)
}
