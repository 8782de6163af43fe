"""What boto3 sends beyond what other clients do: trailers over HTTPS in a
chunked transfer, URLs and forms signed with Version 2, Expect with an empty
body. Usage: boto.py HTTP_ENDPOINT HTTPS_ENDPOINT ACCESS_KEY SECRET_KEY"""
import io
import json
import sys
import urllib.request
import urllib3
import boto3
from boto3.s3.transfer import TransferConfig
from botocore.client import Config
from botocore.exceptions import ClientError

urllib3.disable_warnings()
plain, secure, key, secret = sys.argv[1:5]


def client(url, **config):
    return boto3.client("s3", endpoint_url=url, aws_access_key_id=key, aws_secret_access_key=secret,
                        region_name="us-east-1", verify=False, config=Config(retries={"max_attempts": 1}, **config))


big = bytes(range(256)) * 4 * 4096 * 3  # 12 MiB
for url in plain, secure:
    s3 = client(url)
    s3.create_bucket(Bucket="boto")
    for size in 0, 1, 70000, len(big):
        s3.put_object(Bucket="boto", Key="k", Body=io.BytesIO(big[:size]), Metadata={"a": "b"})
        got = s3.get_object(Bucket="boto", Key="k")
        assert got["Body"].read() == big[:size]
        assert got["ContentLength"] == size and got["Metadata"] == {"a": "b"} and "ContentEncoding" not in got, got
        assert s3.head_object(Bucket="boto", Key="k", ChecksumMode="ENABLED")["ChecksumCRC32"]
    for algorithm in "CRC32", "SHA1", "SHA256":
        s3.put_object(Bucket="boto", Key="k", Body=b"x" * 70000, ChecksumAlgorithm=algorithm)
        assert s3.get_object(Bucket="boto", Key="k")["Body"].read() == b"x" * 70000
    s3.upload_fileobj(io.BytesIO(big), "boto", "multi", Config=TransferConfig(multipart_threshold=5 << 20, multipart_chunksize=5 << 20))
    out = io.BytesIO()
    s3.download_fileobj("boto", "multi", out, Config=TransferConfig(multipart_threshold=5 << 20, multipart_chunksize=5 << 20))
    assert out.getvalue() == big
    # An empty body with Expect: 100-continue, and then a large one on the same connection.
    for _ in range(3):
        s3.put_object(Bucket="boto", Key="empty", Body=b"")
        s3.put_object(Bucket="boto", Key="full", Body=big)
    keys = ["a b+c", "ü/\u20ac", "x//y", "per%41cent", "a/../b"]
    for k in keys:
        s3.put_object(Bucket="boto", Key=k, Body=k.encode())
        assert s3.get_object(Bucket="boto", Key=k)["Body"].read() == k.encode()
    listed = [o["Key"] for o in s3.list_objects_v2(Bucket="boto")["Contents"]]
    assert listed == sorted(keys + ["k", "multi", "empty", "full"], key=lambda k: k.encode()), listed
    s3.copy_object(Bucket="boto", Key="copy", CopySource={"Bucket": "boto", "Key": "a b+c"})
    assert s3.get_object(Bucket="boto", Key="copy")["Body"].read() == b"a b+c"
    deleted = s3.delete_objects(Bucket="boto", Delete={"Objects": [{"Key": k} for k in listed + ["copy"]]})
    assert "Errors" not in deleted and len(deleted["Deleted"]) == len(listed) + 1
    assert s3.list_objects(Bucket="boto").get("Contents") is None
    try:
        s3.get_object(Bucket="boto", Key="gone")
        raise AssertionError("a deleted object was read")
    except ClientError as e:
        assert e.response["Error"]["Code"] == "NoSuchKey", e
    for version in "s3", "s3v4", None:  # None: what boto3 signs with by itself
        signer = client(url, signature_version=version)
        put = signer.generate_presigned_url("put_object", Params={"Bucket": "boto", "Key": "a b+", "ContentType": "text/x", "Metadata": {"m": "1"}})
        request = urllib.request.Request(put, data=b"presigned", method="PUT", headers={"Content-Type": "text/x", **({"x-amz-meta-m": "1"} if version == "s3v4" else {})})
        if url == plain:
            urllib.request.urlopen(request)
            get = signer.generate_presigned_url("get_object", Params={"Bucket": "boto", "Key": "a b+", "ResponseContentType": "text/y"})
            answer = urllib.request.urlopen(get)
            assert answer.read() == b"presigned" and answer.headers["Content-Type"] == "text/y" and answer.headers["x-amz-meta-m"] == "1", answer.headers
            form = signer.generate_presigned_post("boto", "form/${filename}", Fields={"acl": "private"}, Conditions=[{"acl": "private"}])
            parts = b"".join(b'--B\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (k.encode(), v.encode()) for k, v in form["fields"].items())
            parts += b'--B\r\nContent-Disposition: form-data; name="file"; filename="f.txt"\r\n\r\nformed\r\n--B--\r\n'
            urllib.request.urlopen(urllib.request.Request(form["url"], data=parts, headers={"Content-Type": "multipart/form-data; boundary=B"}))
            assert s3.get_object(Bucket="boto", Key="form/f.txt")["Body"].read() == b"formed"
            s3.delete_object(Bucket="boto", Key="form/f.txt")
            s3.delete_object(Bucket="boto", Key="a b+")
    v2 = client(url, signature_version="s3")
    v2.put_object(Bucket="boto", Key="v2", Body=b"two")
    assert v2.get_object(Bucket="boto", Key="v2")["Body"].read() == b"two"
    v2.delete_object(Bucket="boto", Key="v2")
    policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::boto/*"}]}
    s3.put_bucket_policy(Bucket="boto", Policy=json.dumps(policy))
    assert json.loads(s3.get_bucket_policy(Bucket="boto")["Policy"]) == policy
    assert s3.get_bucket_policy_status(Bucket="boto")["PolicyStatus"]["IsPublic"]
    s3.delete_bucket_policy(Bucket="boto")
    try:
        s3.put_bucket_policy(Bucket="boto", Policy=json.dumps({"Statement": []}))
        raise AssertionError("an empty policy was taken")
    except ClientError as e:
        assert e.response["Error"]["Code"] == "MalformedPolicy", e
    s3.delete_bucket(Bucket="boto")
print("ok")
