// What the JavaScript SDK sends beyond what others do: streams with an
// unsigned trailer over plain HTTP, one chunk a write; presigned URLs with
// headers in the query; sorted keys in its own encoding.
// Usage: node sdk.mjs ENDPOINT ACCESS_KEY SECRET_KEY, with the packages of
// the SDK below OGW_NODE_MODULES.
import assert from "node:assert";
import { Readable } from "node:stream";
import { createRequire } from "node:module";

const load = createRequire(process.env.OGW_NODE_MODULES + "/");
const { S3Client, CreateBucketCommand, PutObjectCommand, GetObjectCommand, HeadObjectCommand, ListObjectsV2Command,
  DeleteObjectsCommand, DeleteBucketCommand } = load("@aws-sdk/client-s3");
const { getSignedUrl } = load("@aws-sdk/s3-request-presigner");
const { Upload } = load("@aws-sdk/lib-storage");

const [endpoint, accessKeyId, secretAccessKey] = process.argv.slice(2);
const s3 = new S3Client({ endpoint, region: "us-east-1", forcePathStyle: true, credentials: { accessKeyId, secretAccessKey }, maxAttempts: 1 });
const Bucket = "javascript";
const read = async (Key, more) => Buffer.from(await (await s3.send(new GetObjectCommand({ Bucket, Key, ...more }))).Body.transformToByteArray());

await s3.send(new CreateBucketCommand({ Bucket }));

const pieces = Array.from({ length: 500 }, (_, i) => Buffer.from(`piece ${i};`));
const whole = Buffer.concat(pieces);
await s3.send(new PutObjectCommand({ Bucket, Key: "stream", Body: Readable.from(pieces), ContentLength: whole.length, ChecksumAlgorithm: "CRC32C" }));
assert.deepEqual(await read("stream", { ChecksumMode: "ENABLED" }), whole);
const head = await s3.send(new HeadObjectCommand({ Bucket, Key: "stream" }));
assert.equal(head.ContentEncoding, undefined);

await new Upload({ client: s3, params: { Bucket, Key: "upload", Body: Readable.from(Array(12).fill(Buffer.alloc(1 << 20, 7))) }, partSize: 5 << 20 }).done();
assert.deepEqual(await read("upload"), Buffer.alloc(12 << 20, 7));

const put = await getSignedUrl(s3, new PutObjectCommand({ Bucket, Key: "a b+ü", ContentType: "text/x", Metadata: { m: "1" }, ACL: "public-read" }), { expiresIn: 60 });
let answer = await fetch(put, { method: "PUT", body: "presigned", headers: { "content-type": "text/x" } });
assert.equal(answer.status, 200, await answer.text());
answer = await fetch(await getSignedUrl(s3, new GetObjectCommand({ Bucket, Key: "a b+ü", ResponseContentType: "text/y" })));
assert.equal(await answer.text(), "presigned");
assert.equal(answer.headers.get("content-type"), "text/y");
assert.equal(answer.headers.get("x-amz-meta-m"), "1");
answer = await fetch(`${endpoint}/${Bucket}/a%20b+%C3%BC`);
assert.equal(await answer.text(), "presigned"); // public by its ACL

const listed = (await s3.send(new ListObjectsV2Command({ Bucket, EncodingType: "url" }))).Contents.map((o) => decodeURIComponent(o.Key));
assert.deepEqual(listed, ["a b+ü", "stream", "upload"]);
const deleted = await s3.send(new DeleteObjectsCommand({ Bucket, Delete: { Objects: listed.map((Key) => ({ Key })) } }));
assert.equal(deleted.Deleted.length, 3);
await s3.send(new DeleteBucketCommand({ Bucket }));
console.log("ok");
