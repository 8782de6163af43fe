package s3

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
)

// apiCall is a step of a replay: a call, and the code of the error that the caller
// takes for an answer; "" for success.
type apiCall struct {
	name string
	code string
	call func() error
}

func ok[T any](_ T, err error) error { return err }

func replay(t *testing.T, steps []apiCall) {
	t.Helper()
	for _, s := range steps {
		err := s.call()
		var api smithy.APIError
		switch {
		case s.code == "" && err != nil:
			t.Errorf("%s: %v", s.name, err)
		case s.code != "" && (!errors.As(err, &api) || api.ErrorCode() != s.code):
			t.Errorf("%s: %v, want %s", s.name, err, s.code)
		}
	}
}

// bucketReads are the calls by which the aws provider of Terraform and OpenTofu learns
// of a bucket, in its order. The codes are those that it takes for "not configured":
// with any other it gives up.
func bucketReads(c *awss3.Client, b *string) []apiCall {
	return []apiCall{
		{"HeadBucket", "", func() error { return ok(c.HeadBucket(bg, &awss3.HeadBucketInput{Bucket: b})) }},
		{"GetBucketPolicy", "NoSuchBucketPolicy", func() error { return ok(c.GetBucketPolicy(bg, &awss3.GetBucketPolicyInput{Bucket: b})) }},
		{"GetBucketAcl", "", func() error { return ok(c.GetBucketAcl(bg, &awss3.GetBucketAclInput{Bucket: b})) }},
		{"GetBucketCors", "NoSuchCORSConfiguration", func() error { return ok(c.GetBucketCors(bg, &awss3.GetBucketCorsInput{Bucket: b})) }},
		{"GetBucketWebsite", "NoSuchWebsiteConfiguration", func() error { return ok(c.GetBucketWebsite(bg, &awss3.GetBucketWebsiteInput{Bucket: b})) }},
		{"GetBucketVersioning", "", func() error { return ok(c.GetBucketVersioning(bg, &awss3.GetBucketVersioningInput{Bucket: b})) }},
		{"GetBucketAccelerateConfiguration", "", func() error {
			return ok(c.GetBucketAccelerateConfiguration(bg, &awss3.GetBucketAccelerateConfigurationInput{Bucket: b}))
		}},
		{"GetBucketRequestPayment", "", func() error { return ok(c.GetBucketRequestPayment(bg, &awss3.GetBucketRequestPaymentInput{Bucket: b})) }},
		{"GetBucketLogging", "", func() error { return ok(c.GetBucketLogging(bg, &awss3.GetBucketLoggingInput{Bucket: b})) }},
		{"GetBucketLifecycleConfiguration", "NoSuchLifecycleConfiguration", func() error {
			return ok(c.GetBucketLifecycleConfiguration(bg, &awss3.GetBucketLifecycleConfigurationInput{Bucket: b}))
		}},
		{"GetBucketReplication", "ReplicationConfigurationNotFoundError", func() error { return ok(c.GetBucketReplication(bg, &awss3.GetBucketReplicationInput{Bucket: b})) }},
		{"GetBucketEncryption", "ServerSideEncryptionConfigurationNotFoundError", func() error { return ok(c.GetBucketEncryption(bg, &awss3.GetBucketEncryptionInput{Bucket: b})) }},
		{"GetObjectLockConfiguration", "ObjectLockConfigurationNotFoundError", func() error {
			return ok(c.GetObjectLockConfiguration(bg, &awss3.GetObjectLockConfigurationInput{Bucket: b}))
		}},
		{"GetBucketLocation", "", func() error { return ok(c.GetBucketLocation(bg, &awss3.GetBucketLocationInput{Bucket: b})) }},
		{"GetBucketTagging", "NoSuchTagSet", func() error { return ok(c.GetBucketTagging(bg, &awss3.GetBucketTaggingInput{Bucket: b})) }},
		{"GetPublicAccessBlock", "NoSuchPublicAccessBlockConfiguration", func() error { return ok(c.GetPublicAccessBlock(bg, &awss3.GetPublicAccessBlockInput{Bucket: b})) }},
		{"GetBucketOwnershipControls", "OwnershipControlsNotFoundError", func() error {
			return ok(c.GetBucketOwnershipControls(bg, &awss3.GetBucketOwnershipControlsInput{Bucket: b}))
		}},
	}
}

// TestProvider replays what the aws provider of an infrastructure tool does for a
// bucket, its settings and an object, from creation to destruction.
func TestProvider(t *testing.T) {
	d := openDoor(t, Config{})
	c, b, k := d.client("alice"), aws.String("infra"), aws.String("conf/app.json")
	replay(t, []apiCall{
		{"a bucket that is not there", "NotFound", func() error { return ok(c.HeadBucket(bg, &awss3.HeadBucketInput{Bucket: b})) }},
		{"CreateBucket", "", func() error { return ok(c.CreateBucket(bg, &awss3.CreateBucketInput{Bucket: b})) }},
		{"CreateBucket again", "BucketAlreadyOwnedByYou", func() error { return ok(c.CreateBucket(bg, &awss3.CreateBucketInput{Bucket: b})) }},
	})
	replay(t, bucketReads(c, b))

	tags := &types.Tagging{TagSet: []types.Tag{{Key: aws.String("env"), Value: aws.String("test")}}}
	owned := &types.OwnershipControls{Rules: []types.OwnershipControlsRule{{ObjectOwnership: types.ObjectOwnershipBucketOwnerPreferred}}}
	block := &types.PublicAccessBlockConfiguration{BlockPublicAcls: aws.Bool(true), BlockPublicPolicy: aws.Bool(true), IgnorePublicAcls: aws.Bool(true), RestrictPublicBuckets: aws.Bool(true)}
	rules := &types.CORSConfiguration{CORSRules: []types.CORSRule{{AllowedMethods: []string{"GET"}, AllowedOrigins: []string{"*"}}}}
	policy := aws.String(`{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Principal":"*","Action":"s3:DeleteBucket","Resource":"arn:aws:s3:::infra"}]}`)
	replay(t, []apiCall{
		{"PutBucketTagging", "", func() error {
			return ok(c.PutBucketTagging(bg, &awss3.PutBucketTaggingInput{Bucket: b, Tagging: tags}))
		}},
		{"PutBucketOwnershipControls", "", func() error {
			return ok(c.PutBucketOwnershipControls(bg, &awss3.PutBucketOwnershipControlsInput{Bucket: b, OwnershipControls: owned}))
		}},
		{"PutPublicAccessBlock", "", func() error {
			return ok(c.PutPublicAccessBlock(bg, &awss3.PutPublicAccessBlockInput{Bucket: b, PublicAccessBlockConfiguration: block}))
		}},
		{"PutBucketAcl", "", func() error {
			return ok(c.PutBucketAcl(bg, &awss3.PutBucketAclInput{Bucket: b, ACL: types.BucketCannedACLPrivate}))
		}},
		{"PutBucketCors", "", func() error {
			return ok(c.PutBucketCors(bg, &awss3.PutBucketCorsInput{Bucket: b, CORSConfiguration: rules}))
		}},
		{"PutBucketPolicy", "", func() error { return ok(c.PutBucketPolicy(bg, &awss3.PutBucketPolicyInput{Bucket: b, Policy: policy})) }},
	})
	set := map[string]bool{"GetBucketPolicy": true, "GetBucketCors": true, "GetBucketTagging": true, "GetPublicAccessBlock": true, "GetBucketOwnershipControls": true}
	reads := bucketReads(c, b)
	for i := range reads {
		if set[reads[i].name] {
			reads[i].code = ""
		}
	}
	replay(t, reads)

	head := func() error {
		return ok(c.HeadObject(bg, &awss3.HeadObjectInput{Bucket: b, Key: k, ChecksumMode: types.ChecksumModeEnabled}))
	}
	replay(t, []apiCall{
		{"PutObject", "", func() error {
			return ok(c.PutObject(bg, &awss3.PutObjectInput{Bucket: b, Key: k, Body: strings.NewReader("{}"), ContentType: aws.String("application/json"),
				Tagging: aws.String("env=test"), Metadata: map[string]string{"a": "b"}}))
		}},
		{"HeadObject", "", head},
		{"GetObjectTagging", "", func() error { return ok(c.GetObjectTagging(bg, &awss3.GetObjectTaggingInput{Bucket: b, Key: k})) }},
		{"PutObjectTagging", "", func() error {
			return ok(c.PutObjectTagging(bg, &awss3.PutObjectTaggingInput{Bucket: b, Key: k, Tagging: tags}))
		}},
		{"PutObjectAcl", "", func() error {
			return ok(c.PutObjectAcl(bg, &awss3.PutObjectAclInput{Bucket: b, Key: k, ACL: types.ObjectCannedACLPrivate}))
		}},
		{"DeleteObject", "", func() error { return ok(c.DeleteObject(bg, &awss3.DeleteObjectInput{Bucket: b, Key: k})) }},
		{"HeadObject of what is gone", "NotFound", head},
		{"DeleteBucket under the policy", "AccessDenied", func() error { return ok(c.DeleteBucket(bg, &awss3.DeleteBucketInput{Bucket: b})) }},
		{"DeleteBucketPolicy", "", func() error { return ok(c.DeleteBucketPolicy(bg, &awss3.DeleteBucketPolicyInput{Bucket: b})) }},
		{"DeleteBucketCors", "", func() error { return ok(c.DeleteBucketCors(bg, &awss3.DeleteBucketCorsInput{Bucket: b})) }},
		{"DeleteBucketTagging", "", func() error { return ok(c.DeleteBucketTagging(bg, &awss3.DeleteBucketTaggingInput{Bucket: b})) }},
		{"DeletePublicAccessBlock", "", func() error { return ok(c.DeletePublicAccessBlock(bg, &awss3.DeletePublicAccessBlockInput{Bucket: b})) }},
		{"DeleteBucketOwnershipControls", "", func() error {
			return ok(c.DeleteBucketOwnershipControls(bg, &awss3.DeleteBucketOwnershipControlsInput{Bucket: b}))
		}},
	})
	replay(t, bucketReads(c, b))
	destroy(t, c, b)
}

// destroy is the provider's force_destroy: all versions, and then the bucket.
func destroy(t *testing.T, c *awss3.Client, b *string) {
	t.Helper()
	for _, key := range []string{"a", "b/c", "b/d"} {
		if _, err := c.PutObject(bg, &awss3.PutObjectInput{Bucket: b, Key: aws.String(key), Body: strings.NewReader(key)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := ok(c.DeleteBucket(bg, &awss3.DeleteBucketInput{Bucket: b})); err == nil || !strings.Contains(err.Error(), "BucketNotEmpty") {
		t.Errorf("DeleteBucket of what is not empty: %v", err)
	}
	pages := awss3.NewListObjectVersionsPaginator(c, &awss3.ListObjectVersionsInput{Bucket: b, MaxKeys: aws.Int32(2)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(bg)
		if err != nil {
			t.Fatal(err)
		}
		var ids []types.ObjectIdentifier
		for _, v := range page.Versions {
			ids = append(ids, types.ObjectIdentifier{Key: v.Key, VersionId: v.VersionId})
		}
		out, err := c.DeleteObjects(bg, &awss3.DeleteObjectsInput{Bucket: b, Delete: &types.Delete{Objects: ids, Quiet: aws.Bool(true)}})
		if err != nil || len(out.Errors) > 0 {
			t.Fatalf("DeleteObjects: %v %+v", err, out)
		}
	}
	if _, err := c.DeleteBucket(bg, &awss3.DeleteBucketInput{Bucket: b}); err != nil {
		t.Errorf("DeleteBucket: %v", err)
	}
}
