"""Every kind of resource that boto3 has over S3, with nothing set but what is in the
environment: endpoint, keys and region."""
import json
import os
import ssl
import sys
import urllib.error
import urllib.request

import boto3

env = os.environ
s3 = boto3.resource("s3", endpoint_url=env["URL"])
bucket = s3.Bucket(env["BUCKET"])
tree = env["TREE"]
trust = ssl.create_default_context(cafile=env["CERT"])
big = open(tree + "/big", "rb").read()
print(boto3.__version__, file=sys.stderr)


def fetch(request):
    return urllib.request.urlopen(request, context=trust)


bucket.create()
bucket.wait_until_exists()
assert bucket.creation_date is not None
assert bucket.name in [b.name for b in s3.buckets.all()]

# Objects: whole, in parts, copied, by their attributes.
bucket.upload_file(tree + "/big", "big", ExtraArgs={"Metadata": {"a": "b"}})
obj = bucket.Object("big")
assert obj.content_length == len(big) and obj.metadata == {"a": "b"}, obj.metadata
assert obj.get()["Body"].read() == big
bucket.download_file("big", env["WORK"] + "/big")
assert open(env["WORK"] + "/big", "rb").read() == big
copy = bucket.Object("copy")
copy.copy({"Bucket": bucket.name, "Key": "big"})
assert copy.content_length == len(big)
small = bucket.put_object(Key="small", Body=b"small")
assert small.e_tag == obj.Bucket().Object("small").e_tag
bucket.Object("small2").copy_from(CopySource={"Bucket": bucket.name, "Key": "small"})
assert [o.key for o in bucket.objects.filter(Prefix="sm")] == ["small", "small2"]

# An upload by hand: parts of bytes and of a copy.
upload = bucket.Object("parts").initiate_multipart_upload()
assert [u.id for u in bucket.multipart_uploads.all()] == [upload.id]
first = upload.Part(1).upload(Body=big[: 5 << 20])
second = upload.Part(2).copy_from(CopySource={"Bucket": bucket.name, "Key": "small"})
parts = [{"PartNumber": 1, "ETag": first["ETag"]}, {"PartNumber": 2, "ETag": second["CopyPartResult"]["ETag"]}]
assert [p.part_number for p in upload.parts.all()] == [1, 2]
done = upload.complete(MultipartUpload={"Parts": parts})
assert done.get()["Body"].read() == big[: 5 << 20] + b"small"
bucket.Object("never").initiate_multipart_upload().abort()
assert list(bucket.multipart_uploads.all()) == []

# Lists of more than a page.
many = s3.Bucket(env["MANY"])
assert sum(1 for _ in many.objects.all()) == int(env["MANY_KEYS"])
assert [o.key for o in many.objects.page_size(300).limit(700)] == sorted(o.key for o in many.objects.all())[:700]
assert sum(1 for _ in many.object_versions.all()) == int(env["MANY_KEYS"])

# What a bucket has beside objects.
bucket.Tagging().put(Tagging={"TagSet": [{"Key": "k", "Value": "v"}]})
assert bucket.Tagging().tag_set == [{"Key": "k", "Value": "v"}]
bucket.Tagging().delete()
bucket.Cors().put(CORSConfiguration={"CORSRules": [{"AllowedMethods": ["GET"], "AllowedOrigins": ["*"]}]})
assert bucket.Cors().cors_rules[0]["AllowedMethods"] == ["GET"]
bucket.Cors().delete()
assert bucket.Versioning().status is None
assert bucket.RequestPayment().payer == "BucketOwner"
assert bucket.Logging().logging_enabled is None
bucket.Acl().put(ACL="private")
small.Acl().put(ACL="public-read")
assert len(small.Acl().grants) == 2
assert fetch(env["OBJECTS"] + "/small").read() == b"small"
bucket.Policy().put(Policy=env["READABLE"])
assert json.loads(bucket.Policy().policy) == json.loads(env["READABLE"])
assert fetch(env["OBJECTS"] + "/small2").read() == b"small"
bucket.Policy().delete()
try:
    fetch(env["OBJECTS"] + "/small2")
    raise AssertionError("read without a policy")
except urllib.error.HTTPError as e:
    assert e.code == 403, e

# URLs and forms.
sign = s3.meta.client.generate_presigned_url
fetch(urllib.request.Request(sign("put_object", {"Bucket": bucket.name, "Key": "url"}), data=b"by url", method="PUT", headers={"Content-Type": ""}))
assert fetch(sign("get_object", {"Bucket": bucket.name, "Key": "url"})).read() == b"by url"
form = s3.meta.client.generate_presigned_post(bucket.name, "form/${filename}", Conditions=[["content-length-range", 1, 100]])
body = b"".join(b'--B\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (k.encode(), v.encode()) for k, v in form["fields"].items())
body += b'--B\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nby form\r\n--B--\r\n'
fetch(urllib.request.Request(form["url"], data=body, headers={"Content-Type": "multipart/form-data; boundary=B"}))
assert bucket.Object("form/f").get()["Body"].read() == b"by form"

assert all("Errors" not in page for page in bucket.object_versions.delete())
assert list(bucket.objects.all()) == []
bucket.delete()
bucket.wait_until_not_exists()
