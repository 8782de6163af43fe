package survive

import (
	"bytes"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const (
	// copyBlock is as long as a copy can be that is of bytes, not by reference;
	// copyBlocks of them are more than a server keeps for the next one.
	copyBlock  = 16 << 10
	copyBlocks = 6000
	// made is added to the name of the file that ends a program, for one that
	// signals that its work is done.
	made = ".made"
)

// burst copies within a file as fast as it can, without a sync, and at the end
// looks at what is there.
func burst(w *world) error {
	f, err := os.OpenFile("c", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	block := make([]byte, copyBlock)
	for i := range block {
		block[i] = byte(i * i >> 3)
	}
	if _, err := f.Write(block); err != nil {
		return err
	}
	for i := int64(1); i < copyBlocks; i++ {
		src, dst := (i-1)*copyBlock, i*copyBlock
		if n, err := unix.CopyFileRange(int(f.Fd()), &src, int(f.Fd()), &dst, copyBlock, 0); err != nil || n != copyBlock {
			return fmt.Errorf("copied %d: %w", n, err)
		}
	}
	if err := os.WriteFile(w.stop+made, nil, 0o600); err != nil {
		return err
	}
	if err := w.run(func(int) error { return nil }); err != nil {
		return err
	}
	got, wrong := make([]byte, copyBlock*copyBlocks), 0
	if _, err := f.ReadAt(got, 0); err != nil {
		return err
	}
	for i := 0; i < len(got); i += copyBlock {
		if !bytes.Equal(got[i:i+copyBlock], block) {
			wrong++
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%d of %d blocks are others", wrong, copyBlocks)
	}
	return f.Close()
}
