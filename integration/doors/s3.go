package doors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
)

// S3 is an S3 gateway behind the AWS SDK.
type S3 struct {
	*s3.Client
}

var _ Store = (*S3)(nil)

// NewS3 returns the gateway at host:port.
func NewS3(addr, keyID, secret string) *S3 {
	return &S3{s3.New(s3.Options{
		BaseEndpoint: aws.String("http://" + addr), UsePathStyle: true, Region: "us-east-1",
		Credentials: credentials.NewStaticCredentialsProvider(keyID, secret, ""),
	})}
}

// Name implements Door.
func (d *S3) Name() string { return "s3" }

// Write implements Door.
func (d *S3) Write(path, body string) error { return d.WriteIf(path, body, Cond{}) }

// WriteIf implements Store.
func (d *S3) WriteIf(path, body string, c Cond) error {
	b, k := split(path)
	match, none := c.headers()
	_, err := d.PutObject(context.Background(), &s3.PutObjectInput{
		Bucket: &b, Key: &k, Body: strings.NewReader(body), IfMatch: match, IfNoneMatch: none,
	})
	return s3Error(err)
}

func (c Cond) headers() (match, none *string) {
	if c.IfMatch != "" {
		match = aws.String(`"` + c.IfMatch + `"`)
	}
	if c.IfNone {
		none = aws.String("*")
	}
	return match, none
}

// Read implements Door.
func (d *S3) Read(path string) (string, error) {
	b, k := split(path)
	out, err := d.GetObject(context.Background(), &s3.GetObjectInput{Bucket: &b, Key: &k})
	if err != nil {
		return "", s3Error(err)
	}
	defer out.Body.Close()
	got, err := io.ReadAll(out.Body)
	return string(got), err
}

// Head implements Store.
func (d *S3) Head(path string) (int64, string, error) {
	b, k := split(path)
	out, err := d.HeadObject(context.Background(), &s3.HeadObjectInput{Bucket: &b, Key: &k})
	if err != nil {
		return 0, "", s3Error(err)
	}
	return *out.ContentLength, unquote(out.ETag), nil
}

// Delete implements Object.
func (d *S3) Delete(path string) error {
	b, k := split(path)
	_, err := d.DeleteObject(context.Background(), &s3.DeleteObjectInput{Bucket: &b, Key: &k})
	return err
}

// DeleteMany implements Store.
func (d *S3) DeleteMany(bucket string, keys []string) error {
	var list []types.ObjectIdentifier
	for _, k := range keys {
		list = append(list, types.ObjectIdentifier{Key: &k})
	}
	out, err := d.DeleteObjects(context.Background(), &s3.DeleteObjectsInput{Bucket: &bucket, Delete: &types.Delete{Objects: list}})
	if err != nil {
		return err
	}
	if len(out.Errors) > 0 || len(out.Deleted) != len(keys) {
		return fmt.Errorf("%d of %d keys deleted, errors %+v", len(out.Deleted), len(keys), out.Errors)
	}
	return nil
}

// Copy implements Store.
func (d *S3) Copy(from, to string) error {
	b, k := split(to)
	in := &s3.CopyObjectInput{Bucket: &b, Key: &k, CopySource: &from}
	if from == to {
		in.MetadataDirective = types.MetadataDirectiveReplace
	}
	_, err := d.CopyObject(context.Background(), in)
	return s3Error(err)
}

// Keys implements Store.
func (d *S3) Keys(bucket, prefix, delimiter string, page int32) ([]string, error) {
	in := &s3.ListObjectsV2Input{Bucket: &bucket, Prefix: &prefix, MaxKeys: &page}
	if delimiter != "" {
		in.Delimiter = &delimiter
	}
	var keys []string
	p := s3.NewListObjectsV2Paginator(d.Client, in)
	for p.HasMorePages() {
		out, err := p.NextPage(context.Background())
		if err != nil {
			return nil, err
		}
		var names []string
		for _, o := range out.Contents {
			names = append(names, *o.Key)
		}
		if !slices.IsSorted(names) {
			return nil, fmt.Errorf("a page is not in order: %q", names)
		}
		for _, c := range out.CommonPrefixes {
			names = append(names, *c.Prefix)
		}
		slices.Sort(names) // a page holds keys and prefixes apart
		keys = append(keys, names...)
	}
	return keys, nil
}

// Upload implements Store.
func (d *S3) Upload(path string) (Upload, error) {
	b, k := split(path)
	out, err := d.CreateMultipartUpload(context.Background(), &s3.CreateMultipartUploadInput{Bucket: &b, Key: &k})
	if err != nil {
		return nil, err
	}
	return &s3Upload{d, b, k, *out.UploadId}, nil
}

type s3Upload struct {
	d               *S3
	bucket, key, id string
}

func (u *s3Upload) Part(number int, body string) (string, error) {
	out, err := u.d.UploadPart(context.Background(), &s3.UploadPartInput{
		Bucket: &u.bucket, Key: &u.key, UploadId: &u.id, PartNumber: aws.Int32(int32(number)), Body: strings.NewReader(body),
	})
	if err != nil {
		return "", s3Error(err)
	}
	return unquote(out.ETag), nil
}

func (u *s3Upload) CopyPart(number int, from string, off, length int64) (string, error) {
	out, err := u.d.UploadPartCopy(context.Background(), &s3.UploadPartCopyInput{
		Bucket: &u.bucket, Key: &u.key, UploadId: &u.id, PartNumber: aws.Int32(int32(number)),
		CopySource: &from, CopySourceRange: aws.String(fmt.Sprintf("bytes=%d-%d", off, off+length-1)),
	})
	if err != nil {
		return "", s3Error(err)
	}
	return unquote(out.CopyPartResult.ETag), nil
}

func (u *s3Upload) Complete(etags []string, c Cond) (string, error) {
	var parts []types.CompletedPart
	for i, e := range etags {
		parts = append(parts, types.CompletedPart{PartNumber: aws.Int32(int32(i + 1)), ETag: &e})
	}
	match, none := c.headers()
	out, err := u.d.CompleteMultipartUpload(context.Background(), &s3.CompleteMultipartUploadInput{
		Bucket: &u.bucket, Key: &u.key, UploadId: &u.id, IfMatch: match, IfNoneMatch: none,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
	})
	if err != nil {
		return "", s3Error(err)
	}
	return unquote(out.ETag), nil
}

func (u *s3Upload) Abort() error {
	_, err := u.d.AbortMultipartUpload(context.Background(), &s3.AbortMultipartUploadInput{
		Bucket: &u.bucket, Key: &u.key, UploadId: &u.id,
	})
	return s3Error(err)
}

// s3Error gives S3's codes their place among the errors of all doors.
func s3Error(err error) error {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return err
	}
	switch api.ErrorCode() {
	case "NoSuchKey", "NotFound", "NoSuchUpload":
		return fmt.Errorf("%w: %w", ErrAbsent, err)
	case "PreconditionFailed":
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return err
}
