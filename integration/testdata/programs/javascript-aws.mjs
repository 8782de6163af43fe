// Amazon's SDK for JavaScript: pages, tags, policies, forms, uploads in parts, at the
// style of addresses that it chooses for the endpoint.
import assert from "node:assert";
import { createReadStream, readFileSync } from "node:fs";
import { createRequire } from "node:module";

const { URL: endpoint, BUCKET: Bucket, MANY, MANY_KEYS, TREE, READABLE, OBJECTS, OGW_NODE_MODULES } = process.env;
const load = createRequire(OGW_NODE_MODULES + "/");
const s3sdk = load("@aws-sdk/client-s3");
const { getSignedUrl } = load("@aws-sdk/s3-request-presigner");
const { createPresignedPost } = load("@aws-sdk/s3-presigned-post");
const { Upload } = load("@aws-sdk/lib-storage");

const s3 = new s3sdk.S3Client({ endpoint });
const send = (name, input) => s3.send(new s3sdk[name + "Command"](input));
const read = async (Key) => Buffer.from(await (await send("GetObject", { Bucket, Key })).Body.transformToByteArray());
const big = readFileSync(TREE + "/big");

await send("CreateBucket", { Bucket });
await send("PutObject", { Bucket, Key: "small", Body: "small", Metadata: { a: "b" }, Tagging: "k=v" });
const head = await send("HeadObject", { Bucket, Key: "small" });
assert.deepEqual([head.ContentLength, head.Metadata], [5, { a: "b" }]);
assert.deepEqual((await send("GetObjectTagging", { Bucket, Key: "small" })).TagSet, [{ Key: "k", Value: "v" }]);
await new Upload({ client: s3, params: { Bucket, Key: "big", Body: createReadStream(TREE + "/big") } }).done();
assert.deepEqual(await read("big"), big);
await send("CopyObject", { Bucket, Key: "copy", CopySource: `${Bucket}/small` });
assert.equal((await read("copy")).toString(), "small");

let keys = 0;
for await (const page of s3sdk.paginateListObjectsV2({ client: s3 }, { Bucket: MANY })) keys += page.KeyCount;
assert.equal(keys, Number(MANY_KEYS));

await send("PutBucketPolicy", { Bucket, Policy: READABLE });
assert.equal((await send("GetBucketPolicy", { Bucket })).Policy, READABLE);
assert.equal(await (await fetch(`${OBJECTS}/small`)).text(), "small");
await send("DeleteBucketPolicy", { Bucket });
assert.equal((await fetch(`${OBJECTS}/small`)).status, 403);

const put = await getSignedUrl(s3, new s3sdk.PutObjectCommand({ Bucket, Key: "url" }));
assert.equal((await fetch(put, { method: "PUT", body: "by url" })).status, 200);
assert.equal(await (await fetch(await getSignedUrl(s3, new s3sdk.GetObjectCommand({ Bucket, Key: "url" })))).text(), "by url");
const { url, fields } = await createPresignedPost(s3, { Bucket, Key: "form/${filename}", Conditions: [["content-length-range", 1, 100]] });
const form = new FormData();
for (const [name, value] of Object.entries(fields)) form.append(name, value);
form.append("file", new Blob(["by form"]), "f");
const answer = await fetch(url, { method: "POST", body: form });
assert.equal(answer.status, 204, await answer.text());
assert.equal((await read("form/f")).toString(), "by form");

const Objects = (await send("ListObjectsV2", { Bucket })).Contents.map(({ Key }) => ({ Key }));
assert.equal(Objects.length, 5);
assert.equal((await send("DeleteObjects", { Bucket, Delete: { Objects } })).Errors, undefined);
await send("DeleteBucket", { Bucket });
