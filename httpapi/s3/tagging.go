package s3

import (
	"encoding/xml"
	"net/http"
	"net/url"
	"sort"
	"strings"
	"unicode/utf8"

	"ogw/httpapi"
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

// parseTagging reads and checks tags in URL form, as in x-amz-tagging.
func parseTagging(v string) ([]tag, error) {
	tags, err := parseTags(v)
	if err != nil {
		return nil, err
	}
	return tags, checkTags(tags, maxTags)
}

// parseTags reads the URL form, in which tags are kept.
func parseTags(v string) ([]tag, error) {
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
	return tags, nil
}

// systemTags begins the names of tags that only Amazon's own services set.
const systemTags = "aws:"

// checkTags checks those of a bucket, where most is maxBucketTags, or of an object.
func checkTags(tags []tag, most int) error {
	if len(tags) > most {
		if most == maxBucketTags {
			return newError(codeInvalidTag).withMessage("Bucket tag count cannot be greater than %d", most)
		}
		return newError(codeInvalidTag).withMessage("Object tags cannot be greater than %d", most)
	}
	seen := map[string]bool{}
	for _, t := range tags {
		switch {
		case t.Key == "" || !utf8.ValidString(t.Key) || utf8.RuneCountInString(t.Key) > maxTagKeyRunes:
			return newError(codeInvalidTag).withMessage("The TagKey you have provided is invalid").with("TagKey", t.Key)
		case !utf8.ValidString(t.Value) || utf8.RuneCountInString(t.Value) > maxTagValueRunes:
			return newError(codeInvalidTag).withMessage("The TagValue you have provided is invalid").with("TagValue", t.Value)
		case len(t.Key) >= len(systemTags) && strings.EqualFold(t.Key[:len(systemTags)], systemTags):
			if most == maxBucketTags {
				return newError(codeInvalidTag).withMessage("System tags cannot be added/updated by requester")
			}
			return newError(codeInvalidTag).withMessage("Your TagKey cannot be prefixed with aws:").with("TagKey", t.Key)
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
	info, err := q.fs.HeadObject(q.ctx, q.name, vfs.GetOptions{})
	if err != nil {
		return err
	}
	tags, err := parseTags(info.Meta.Tags())
	if err != nil {
		return err
	}
	q.sendTags(tags)
	return nil
}

func (q *request) sendTags(tags []tag) {
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
}

// putObjectTagging is PutObjectTagging.
func (q *request) putObjectTagging() error {
	var doc taggingXML
	if err := q.readXML(configBounds, &doc); err != nil {
		return err
	}
	if err := checkTags(doc.Tags, maxTags); err != nil {
		return err
	}
	q.keys.tags = url.Values{}
	for _, t := range doc.Tags {
		q.keys.tags.Add(t.Key, t.Value)
	}
	if err := q.fs.SetObjectTags(q.ctx, q.name, encodeTags(doc.Tags)); err != nil {
		return err
	}
	q.w.WriteHeader(http.StatusOK)
	return nil
}

// deleteObjectTagging is DeleteObjectTagging.
func (q *request) deleteObjectTagging() error {
	if err := q.fs.SetObjectTags(q.ctx, q.name, ""); err != nil {
		return err
	}
	q.w.WriteHeader(http.StatusNoContent)
	return nil
}

// bucketTags is the name under which a bucket's tags are configured.
const bucketTags = "tagging"

// getBucketTagging is GetBucketTagging.
func (q *request) getBucketTagging() error {
	v, err := q.fs.BucketConfig(q.ctx, q.name.Bucket, bucketTags)
	if err != nil {
		return err
	}
	if len(v) == 0 {
		return newError(codeNoSuchTagSet).with("BucketName", q.name.Bucket)
	}
	tags, err := parseTags(string(v))
	if err != nil {
		return err
	}
	q.sendTags(tags)
	return nil
}

// putBucketTagging is PutBucketTagging.
func (q *request) putBucketTagging() error {
	var doc taggingXML
	if err := q.readXML(configBounds, &doc); err != nil {
		return err
	}
	if err := checkTags(doc.Tags, maxBucketTags); err != nil {
		return err
	}
	text := encodeTags(doc.Tags)
	httpapi.NoteText(q.ctx, "tags", text)
	return q.setConfig(bucketTags, []byte(text), http.StatusNoContent)
}

// deleteBucketTagging is DeleteBucketTagging.
func (q *request) deleteBucketTagging() error {
	return q.setConfig(bucketTags, nil, http.StatusNoContent)
}
