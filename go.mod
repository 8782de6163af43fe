module ogw

go 1.26.8

require (
	github.com/minio/crc64nvme v1.1.1
	github.com/tidwall/btree v1.8.2
)

require (
	github.com/klauspost/cpuid/v2 v2.2.9 // indirect
	golang.org/x/sys v0.28.0 // indirect
)
