package integration

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/minio/minio-go/v7"
	mcreds "github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/tags"

	"ogw/integration/testenv"
)

// transport finds the names of buckets on loopback, and trusts the site.
func (p *site) transport(t *testing.T) *http.Transport {
	t.Helper()
	pem, err := os.ReadFile(p.cert)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	tr := http.DefaultTransport.(*http.Transport).Clone()
	tr.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		_, port, _ := net.SplitHostPort(addr)
		return new(net.Dialer).DialContext(ctx, network, "127.0.0.1:"+port)
	}
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

// send sends a request as a program that knows nothing of S3 would.
func send(t *testing.T, tr *http.Transport, method, url, kind string, body io.Reader) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	a, err := tr.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(b)
}

// formBody is what a browser sends.
func formBody(fields map[string]string, file string) (kind, body string) {
	for name, value := range fields {
		body += "--B\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n"
	}
	return "multipart/form-data; boundary=B", body + "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n" + file + "\r\n--B--\r\n"
}

// TestGoSDKs: Amazon's SDK for Go with its transfer manager and its credentials of STS,
// and MinIO's.
func TestGoSDKs(t *testing.T) {
	wantPrograms(t)
	p := newSite(t)
	trust := filepath.Join(p.Dir, "trust")
	if err := os.WriteFile(trust, []byte(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"*"},"Action":"sts:AssumeRole"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	p.OGW("role", "add", "--trust", trust, "reader")
	for _, w := range allWays {
		t.Run(w.scheme+" "+w.style, func(t *testing.T) {
			url, _ := p.address(w, "x")
			t.Run("aws", func(t *testing.T) { p.goAWS(t, w, url) })
			t.Run("minio", func(t *testing.T) { p.goMinIO(t, w, url) })
		})
	}
}

func check[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func (p *site) goAWS(t *testing.T, w way, url string) {
	ctx, tr, bucket := t.Context(), p.transport(t), aws.String(w.bucket("go-aws"))
	cfg := aws.Config{Region: "us-east-1", BaseEndpoint: &url, HTTPClient: &http.Client{Transport: tr},
		Credentials: credentials.NewStaticCredentialsProvider(p.KeyID, p.Secret, "")}
	c := s3.NewFromConfig(cfg)
	check[*s3.CreateBucketOutput](t)(c.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: bucket}))

	// Whole trees, and objects in parts.
	tm := transfermanager.New(c)
	up := check[*transfermanager.UploadDirectoryOutput](t)(tm.UploadDirectory(ctx, &transfermanager.UploadDirectoryInput{Bucket: bucket, Source: &p.tree, Recursive: aws.Bool(true), KeyPrefix: aws.String("tree")}))
	if up.ObjectsFailed != 0 {
		t.Errorf("%+v", up)
	}
	back := testenv.TempDir(t)
	check[*transfermanager.DownloadDirectoryOutput](t)(tm.DownloadDirectory(ctx, &transfermanager.DownloadDirectoryInput{Bucket: bucket, Destination: &back, KeyPrefix: aws.String("tree")}))
	p.with(t).Command("diff", "-r", p.tree, back)
	big := check[[]byte](t)(os.ReadFile(filepath.Join(p.tree, "big")))
	check[*transfermanager.UploadObjectOutput](t)(tm.UploadObject(ctx, &transfermanager.UploadObjectInput{Bucket: bucket, Key: aws.String("big"), Body: io.MultiReader(bytes.NewReader(big)),
		Metadata: map[string]string{"a": "b"}, Tagging: aws.String("k=v")}))
	got := check[*transfermanager.GetObjectOutput](t)(tm.GetObject(ctx, &transfermanager.GetObjectInput{Bucket: bucket, Key: aws.String("big")}))
	if b, err := io.ReadAll(got.Body); err != nil || !bytes.Equal(b, big) || got.Metadata["a"] != "b" {
		t.Errorf("%d bytes, %v, %v", len(b), got.Metadata, err)
	}
	if set := check[*s3.GetObjectTaggingOutput](t)(c.GetObjectTagging(ctx, &s3.GetObjectTaggingInput{Bucket: bucket, Key: aws.String("big")})).TagSet; len(set) != 1 || *set[0].Value != "v" {
		t.Errorf("tags: %+v", set)
	}
	keys := 0
	for pages := s3.NewListObjectsV2Paginator(c, &s3.ListObjectsV2Input{Bucket: aws.String("many")}); pages.HasMorePages(); {
		keys += len(check[*s3.ListObjectsV2Output](t)(pages.NextPage(ctx)).Contents)
	}
	if keys != manyKeys {
		t.Errorf("%d keys", keys)
	}

	signer := s3.NewPresignClient(c)
	put := check[*v4.PresignedHTTPRequest](t)(signer.PresignPutObject(ctx, &s3.PutObjectInput{Bucket: bucket, Key: aws.String("url")}))
	get := check[*v4.PresignedHTTPRequest](t)(signer.PresignGetObject(ctx, &s3.GetObjectInput{Bucket: bucket, Key: aws.String("url")}))
	if status, text := send(t, tr, "PUT", put.URL, "", strings.NewReader("by url")); status != 200 {
		t.Errorf("%d %s", status, text)
	}
	if status, text := send(t, tr, "GET", get.URL, "", nil); status != 200 || text != "by url" {
		t.Errorf("%d %s", status, text)
	}
	post := check[*s3.PresignedPostRequest](t)(signer.PresignPostObject(ctx, &s3.PutObjectInput{Bucket: bucket, Key: aws.String("form")}))
	kind, body := formBody(post.Values, "by form")
	if status, text := send(t, tr, "POST", post.URL, kind, strings.NewReader(body)); status != 204 {
		t.Errorf("%d %s", status, text)
	}
	p.assumed(t, c, cfg, *bucket)
	for _, v := range check[*s3.ListObjectsV2Output](t)(c.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: bucket})).Contents {
		check[*s3.DeleteObjectOutput](t)(c.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: bucket, Key: v.Key}))
	}
	check[*s3.DeleteBucketOutput](t)(c.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: bucket}))
}

// assumed reads what a bucket's policy gives a role, by credentials of STS that the SDK
// fetches by itself.
func (p *site) assumed(t *testing.T, c *s3.Client, cfg aws.Config, bucket string) {
	t.Helper()
	arn := "arn:aws:iam::000000000000:role/reader"
	policy := fmt.Sprintf(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":%q},"Action":"s3:GetObject","Resource":"arn:aws:s3:::%s/url"}]}`, arn, bucket)
	check[*s3.PutBucketPolicyOutput](t)(c.PutBucketPolicy(t.Context(), &s3.PutBucketPolicyInput{Bucket: &bucket, Policy: &policy}))
	cfg.Credentials = aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(sts.NewFromConfig(cfg), arn))
	role := s3.NewFromConfig(cfg)
	check[*s3.GetObjectOutput](t)(role.GetObject(t.Context(), &s3.GetObjectInput{Bucket: &bucket, Key: aws.String("url")})).Body.Close()
	if _, err := role.GetObject(t.Context(), &s3.GetObjectInput{Bucket: &bucket, Key: aws.String("form")}); err == nil || !strings.Contains(err.Error(), "AccessDenied") {
		t.Errorf("what the policy does not give: %v", err)
	}
	check[*s3.DeleteBucketPolicyOutput](t)(c.DeleteBucketPolicy(t.Context(), &s3.DeleteBucketPolicyInput{Bucket: &bucket}))
}

func (p *site) goMinIO(t *testing.T, w way, url string) {
	ctx, tr, bucket := t.Context(), p.transport(t), w.bucket("go-minio")
	host := url[strings.LastIndexByte(url, '/')+1:]
	lookup := map[string]minio.BucketLookupType{"path": minio.BucketLookupPath, "host": minio.BucketLookupDNS}[w.style]
	open := func(creds *mcreds.Credentials) *minio.Client {
		return check[*minio.Client](t)(minio.New(host, &minio.Options{Creds: creds, Region: "us-east-1", Secure: w.scheme == "https", Transport: tr, BucketLookup: lookup}))
	}
	c := open(mcreds.NewStaticV4(p.KeyID, p.Secret, ""))
	if err := c.MakeBucket(ctx, bucket, minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	big := check[[]byte](t)(os.ReadFile(filepath.Join(p.tree, "big")))
	check[minio.UploadInfo](t)(c.FPutObject(ctx, bucket, "file", filepath.Join(p.tree, "big"), minio.PutObjectOptions{PartSize: 5 << 20, UserMetadata: map[string]string{"a": "b"}, UserTags: map[string]string{"k": "v"}}))
	check[minio.UploadInfo](t)(c.PutObject(ctx, bucket, "stream", io.MultiReader(bytes.NewReader(big)), -1, minio.PutObjectOptions{PartSize: 5 << 20}))
	info := check[minio.ObjectInfo](t)(c.StatObject(ctx, bucket, "file", minio.StatObjectOptions{}))
	if info.UserMetadata["A"] != "b" || info.UserTagCount != 1 {
		t.Errorf("%+v", info)
	}
	if set := check[*tags.Tags](t)(c.GetObjectTagging(ctx, bucket, "file", minio.GetObjectTaggingOptions{})).ToMap(); set["k"] != "v" {
		t.Errorf("tags: %v", set)
	}
	check[minio.UploadInfo](t)(c.ComposeObject(ctx, minio.CopyDestOptions{Bucket: bucket, Object: "both"}, minio.CopySrcOptions{Bucket: bucket, Object: "file"}, minio.CopySrcOptions{Bucket: bucket, Object: "stream"}))
	o := check[*minio.Object](t)(c.GetObject(ctx, bucket, "both", minio.GetObjectOptions{}))
	if b, err := io.ReadAll(o); err != nil || !bytes.Equal(b, append(big[:len(big):len(big)], big...)) {
		t.Errorf("%d bytes composed, %v", len(b), err)
	}
	keys := 0
	for o := range c.ListObjects(ctx, "many", minio.ListObjectsOptions{Recursive: true}) {
		if keys++; o.Err != nil {
			t.Fatal(o.Err)
		}
	}
	if keys != manyKeys {
		t.Errorf("%d keys", keys)
	}
	p.minioSigned(t, tr, c, bucket)
	p.minioPolicy(t, open, c, url, bucket, tr)
	gone := c.RemoveObjectsWithResult(ctx, bucket, c.ListObjects(ctx, bucket, minio.ListObjectsOptions{Recursive: true}), minio.RemoveObjectsOptions{})
	for r := range gone {
		if r.Err != nil {
			t.Error(r.Err)
		}
	}
	if err := c.RemoveBucket(ctx, bucket); err != nil {
		t.Error(err)
	}
}

// minioSigned uses URLs and a form that minio-go signs.
func (p *site) minioSigned(t *testing.T, tr *http.Transport, c *minio.Client, bucket string) {
	t.Helper()
	ctx := t.Context()
	put, err := c.PresignedPutObject(ctx, bucket, "url", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if status, text := send(t, tr, "PUT", put.String(), "", strings.NewReader("by url")); status != 200 {
		t.Errorf("%d %s", status, text)
	}
	get, err := c.PresignedGetObject(ctx, bucket, "url", time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}
	if status, text := send(t, tr, "GET", get.String(), "", nil); status != 200 || text != "by url" {
		t.Errorf("%d %s", status, text)
	}
	policy := minio.NewPostPolicy()
	for _, err := range []error{policy.SetBucket(bucket), policy.SetKey("form"), policy.SetExpires(time.Now().Add(time.Minute)), policy.SetContentLengthRange(1, 100)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	post, fields, err := c.PresignedPostPolicy(ctx, policy)
	if err != nil {
		t.Fatal(err)
	}
	kind, body := formBody(fields, "by form")
	if status, text := send(t, tr, "POST", post.String(), kind, strings.NewReader(body)); status != 204 {
		t.Errorf("%d %s", status, text)
	}
}

// minioPolicy reads by a policy, and as a role whose credentials minio-go fetches.
func (p *site) minioPolicy(t *testing.T, open func(*mcreds.Credentials) *minio.Client, c *minio.Client, url, bucket string, tr *http.Transport) {
	t.Helper()
	ctx := t.Context()
	arn := "arn:aws:iam::000000000000:role/reader"
	policy := fmt.Sprintf(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":%q},"Action":"s3:GetObject","Resource":"arn:aws:s3:::%s/url"}]}`, arn, bucket)
	if err := c.SetBucketPolicy(ctx, bucket, policy); err != nil {
		t.Fatal(err)
	}
	if got, err := c.GetBucketPolicy(ctx, bucket); err != nil || got != policy {
		t.Errorf("%s, %v", got, err)
	}
	role := open(mcreds.New(&mcreds.STSAssumeRole{Client: &http.Client{Transport: tr}, STSEndpoint: url,
		Options: mcreds.STSAssumeRoleOptions{AccessKey: p.KeyID, SecretKey: p.Secret, RoleARN: arn, RoleSessionName: "minio-go", Location: "us-east-1"}}))
	if b, err := io.ReadAll(check[*minio.Object](t)(role.GetObject(ctx, bucket, "url", minio.GetObjectOptions{}))); err != nil || string(b) != "by url" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := role.StatObject(ctx, bucket, "form", minio.StatObjectOptions{}); minio.ToErrorResponse(err).StatusCode != http.StatusForbidden {
		t.Errorf("what the policy does not give: %v", err)
	}
	if err := c.SetBucketPolicy(ctx, bucket, ""); err != nil {
		t.Error(err)
	}
}
