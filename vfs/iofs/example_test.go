package iofs_test

import (
	"context"
	"fmt"
	"io/fs"
	"log"
	"strings"

	"ogw/cluster/mem"
	"ogw/vfs"
	"ogw/vfs/iofs"
)

// Walk a bucket with the standard library.
func Example() {
	ctx := context.Background()
	c := mem.New(mem.Options{}) // local.Open keeps everything on disk
	defer c.Close()
	v, err := vfs.Open(ctx, c, vfs.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer v.Close(ctx)
	if _, err := v.CreateBucket(ctx, "photos", vfs.Root); err != nil {
		log.Fatal(err)
	}
	for _, key := range []string{"2024/a.jpg", "2024/b.jpg", "readme.txt"} {
		_, err := v.PutObject(ctx, vfs.ObjectName{Bucket: "photos", Key: key}, strings.NewReader("bytes of "+key), vfs.PutOptions{Size: -1})
		if err != nil {
			log.Fatal(err)
		}
	}

	photos, err := iofs.New(ctx, v, vfs.Root, "/photos")
	if err != nil {
		log.Fatal(err)
	}
	fs.WalkDir(photos, ".", func(path string, e fs.DirEntry, err error) error {
		fmt.Println(path, e.IsDir())
		return err
	})
	// Output:
	// . true
	// 2024 true
	// 2024/a.jpg false
	// 2024/b.jpg false
	// readme.txt false
}
