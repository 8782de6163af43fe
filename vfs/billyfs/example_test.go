package billyfs_test

import (
	"context"
	"fmt"
	"log"

	"ogw/cluster/mem"
	"ogw/vfs"
	"ogw/vfs/billyfs"

	"github.com/go-git/go-billy/v5/util"
)

// Write through billy, read as an object.
func Example() {
	ctx := context.Background()
	c := mem.New(mem.Options{}) // local.Open keeps everything on disk
	defer c.Close()
	v, err := vfs.Open(ctx, c, vfs.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer v.Close(ctx)
	if _, err := v.CreateBucket(ctx, "repos", vfs.Root); err != nil {
		log.Fatal(err)
	}

	fsys, err := billyfs.New(ctx, v, vfs.Root, "/repos")
	if err != nil {
		log.Fatal(err)
	}
	if err := util.WriteFile(fsys, "project/README", []byte("read me"), 0o644); err != nil {
		log.Fatal(err)
	}
	info, err := v.HeadObject(ctx, vfs.ObjectName{Bucket: "repos", Key: "project/README"}, vfs.GetOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(info.Key, info.Size)
	// Output: project/README 7
}
