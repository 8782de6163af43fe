package s3

import (
	"encoding/xml"
	"net/http"
	"net/url"
	"sort"
	"strings"
	"unicode/utf8"

	"ogw/vfs"
)

type tag struct {
	Key   string `xml:"Key"`
	Value string `xml:"Value"`
}

type taggingXML struct {
	XMLName xml.Name `xml:"Tagging"`
	Tags    []tag    `xml:"TagSet>Tag"`
}

// parseTagging reads tags in URL form, as in x-amz-tagging.
func parseTagging(v string) ([]tag, error) {
	values, err := url.ParseQuery(v)
	if err != nil {
		return nil, invalidArgument("x-amz-tagging", v, "The header 'x-amz-tagging' shall be encoded as UTF-8 then URLEncoded URL query parameters without tag name duplicates.")
	}
	var tags []tag
	for k, vs := range values {
		for _, v := range vs {
			tags = append(tags, tag{k, v})
		}
	}
	sort.Slice(tags, func(i, j int) bool { return tags[i].Key < tags[j].Key })
	return tags, checkTags(tags)
}

func checkTags(tags []tag) error {
	if len(tags) > maxTags {
		return newError(codeInvalidTag).withMessage("Object tags cannot be greater than %d", maxTags)
	}
	seen := map[string]bool{}
	for _, t := range tags {
		switch {
		case t.Key == "" || !utf8.ValidString(t.Key) || utf8.RuneCountInString(t.Key) > maxTagKeyRunes:
			return newError(codeInvalidTag).withMessage("The TagKey you have provided is invalid").with("TagKey", t.Key)
		case !utf8.ValidString(t.Value) || utf8.RuneCountInString(t.Value) > maxTagValueRunes:
			return newError(codeInvalidTag).withMessage("The TagValue you have provided is invalid").with("TagValue", t.Value)
		case seen[t.Key]:
			return newError(codeInvalidTag).withMessage("Cannot provide multiple Tags with the same key").with("TagKey", t.Key)
		}
		seen[t.Key] = true
	}
	return nil
}

func encodeTags(tags []tag) string {
	parts := make([]string, len(tags))
	for i, t := range tags {
		parts[i] = url.QueryEscape(t.Key) + "=" + url.QueryEscape(t.Value)
	}
	return strings.Join(parts, "&")
}

// getObjectTagging is GetObjectTagging.
func (q *request) getObjectTagging() error {
	info, err := q.fs.HeadObject(q.ctx, q.bucket, q.key, vfs.GetOptions{})
	if err != nil {
		return err
	}
	tags, err := parseTagging(info.Meta.Headers[taggingHeader])
	if err != nil {
		return err
	}
	var x xmlWriter
	x.start("Tagging", xmlNamespace)
	x.open("TagSet")
	for _, t := range tags {
		x.open("Tag")
		x.str("Key", t.Key)
		x.str("Value", t.Value)
		x.end("Tag")
	}
	x.end("TagSet")
	x.end("Tagging")
	x.send(q.w, q.r, http.StatusOK)
	return nil
}

// putObjectTagging is PutObjectTagging.
func (q *request) putObjectTagging() error {
	var doc taggingXML
	if err := q.readXML(configBounds, &doc); err != nil {
		return err
	}
	if err := checkTags(doc.Tags); err != nil {
		return err
	}
	if err := q.fs.SetObjectHeader(q.ctx, q.bucket, q.key, taggingHeader, encodeTags(doc.Tags)); err != nil {
		return err
	}
	q.w.WriteHeader(http.StatusOK)
	return nil
}

// deleteObjectTagging is DeleteObjectTagging.
func (q *request) deleteObjectTagging() error {
	if err := q.fs.SetObjectHeader(q.ctx, q.bucket, q.key, taggingHeader, ""); err != nil {
		return err
	}
	q.w.WriteHeader(http.StatusNoContent)
	return nil
}
