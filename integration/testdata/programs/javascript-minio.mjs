// MinIO's client for JavaScript.
import assert from "node:assert";
import { createReadStream, readFileSync } from "node:fs";
import { createRequire } from "node:module";

const { BUCKET: bucket, MANY, MANY_KEYS, TREE, WORK, READABLE, OBJECTS, STYLE, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, OGW_NODE_MODULES } = process.env;
const { Client } = createRequire(OGW_NODE_MODULES + "/")("minio");
const at = new URL(process.env.URL);
const s3 = new Client({ endPoint: at.hostname, port: Number(at.port), useSSL: at.protocol === "https:", region: "us-east-1",
  accessKey: AWS_ACCESS_KEY_ID, secretKey: AWS_SECRET_ACCESS_KEY, pathStyle: STYLE === "path", partSize: 5 << 20 });
const all = (stream) => new Promise((done, fail) => {
  const list = [];
  stream.on("data", (x) => list.push(x)).on("end", () => done(list)).on("error", fail);
});
const big = readFileSync(TREE + "/big");

await s3.makeBucket(bucket);
assert.ok(await s3.bucketExists(bucket));
await s3.fPutObject(bucket, "big", TREE + "/big", { "x-amz-meta-a": "b" });
await s3.putObject(bucket, "stream", createReadStream(TREE + "/big")); // of unknown size: in parts
await s3.putObject(bucket, "small", "small");
await s3.fGetObject(bucket, "stream", WORK + "/stream");
assert.deepEqual(readFileSync(WORK + "/stream"), big);
const info = await s3.statObject(bucket, "big");
assert.deepEqual([info.size, info.metaData.a], [big.length, "b"]);
assert.deepEqual(Buffer.concat(await all(await s3.getPartialObject(bucket, "big", 100, 50))), big.subarray(100, 150));
await s3.copyObject(bucket, "copy", `/${bucket}/small`);

assert.equal((await all(s3.listObjectsV2(MANY, "", true))).length, Number(MANY_KEYS));
assert.equal((await all(s3.listObjects(MANY, "", true))).length, Number(MANY_KEYS));

await s3.setObjectTagging(bucket, "small", { k: "v" });
assert.deepEqual(await s3.getObjectTagging(bucket, "small"), [{ Key: "k", Value: "v" }]);
await s3.setBucketPolicy(bucket, READABLE);
assert.equal(await s3.getBucketPolicy(bucket), READABLE);
assert.equal(await (await fetch(`${OBJECTS}/small`)).text(), "small");
await s3.setBucketPolicy(bucket, "");
assert.equal((await fetch(`${OBJECTS}/small`)).status, 403);

assert.equal((await fetch(await s3.presignedPutObject(bucket, "url", 60), { method: "PUT", body: "by url" })).status, 200);
assert.equal(await (await fetch(await s3.presignedGetObject(bucket, "url", 60))).text(), "by url");
const policy = s3.newPostPolicy();
policy.setBucket(bucket);
policy.setKey("form");
policy.setExpires(new Date(Date.now() + 60_000));
policy.setContentLengthRange(1, 100);
const { postURL, formData } = await s3.presignedPostPolicy(policy);
const form = new FormData();
for (const [name, value] of Object.entries(formData)) form.append(name, value);
form.append("file", new Blob(["by form"]), "f");
const answer = await fetch(postURL, { method: "POST", body: form });
assert.equal(answer.status, 204, await answer.text());

await s3.initiateNewMultipartUpload(bucket, "unfinished", {});
assert.equal((await all(s3.listIncompleteUploads(bucket, "", true))).length, 1);
await s3.removeIncompleteUpload(bucket, "unfinished");
assert.equal((await all(s3.listIncompleteUploads(bucket, "", true))).length, 0);
const names = (await all(s3.listObjectsV2(bucket, "", true))).map((o) => o.name);
assert.deepEqual(names, ["big", "copy", "form", "small", "stream", "url"]);
await s3.removeObjects(bucket, names);
await s3.removeBucket(bucket);
