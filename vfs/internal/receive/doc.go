// Package receive stores the bodies of requests as contents that no file has yet.
//
//	body ─┬─ up to InlineBytes: bytes of the inline extent, in a pooled buffer
//	      ├─ stated to fit one buffer: one blob, hashed while it becomes durable
//	      └─ longer, or of no stated size: streamed into blobs, hashed beside it
//	             │
//	         Received: content, MD5, checksums ── who publishes it releases the buffer
//
// The MD5 of all bytes and the CRC64NVME are always computed. What was stated is
// compared before anything is returned, and what fails leaves no blob. Memory is
// bounded by bodyhash.Buffers; who finds none free goes on with small buffers.
package receive
