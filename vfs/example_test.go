package vfs_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	"ogw/cluster/local"
	"ogw/vfs"
)

// The namespace without any door: a store in a folder, an object put by its
// key and read as a file by its path.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "ogw-example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	c, err := local.Open(ctx, local.Options{Dir: dir})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	fs, err := vfs.Open(ctx, c, vfs.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer fs.Close(ctx)

	if _, err := fs.CreateBucket(ctx, "photos", vfs.Root); err != nil {
		log.Fatal(err)
	}
	body := strings.NewReader("a cat")
	if _, err := fs.PutObject(ctx, vfs.ObjectName{Bucket: "photos", Key: "2026/cat.jpg"}, body, vfs.PutOptions{Size: -1}); err != nil {
		log.Fatal(err)
	}

	file, err := fs.Resolve(ctx, vfs.Root, "photos/2026/cat.jpg", true)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("a file of", file.Size, "bytes")

	object, err := fs.GetObject(ctx, vfs.ObjectName{Bucket: "photos", Key: "2026/cat.jpg"}, vfs.GetOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer object.Close()
	text := make([]byte, object.Info.Size)
	if _, err := object.ReadAt(text, 0); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s %s\n", text, object.Info.ETag)

	page, err := fs.ListObjects(ctx, "photos", vfs.ListOptions{Delimiter: "/", MaxKeys: vfs.MaxListKeys})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(page.CommonPrefixes)
	// Output:
	// a file of 5 bytes
	// a cat c1d0e44b09d5ac52f90f463fe410fc88
	// [2026/]
}
