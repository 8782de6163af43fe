package record

import (
	"fmt"
	"strconv"
	"strings"
)

// SegmentSuffix ends the names of segment files.
const SegmentSuffix = ".seg"

// SegmentName returns the name of a segment's file.
func SegmentName(number uint64) string { return fmt.Sprintf("%016x%s", number, SegmentSuffix) }

// ParseSegmentName returns the number of the segment with that name; false if
// it is none.
func ParseSegmentName(name string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, SegmentSuffix)
	if !ok || len(digits) != 16 {
		return 0, false
	}
	number, err := strconv.ParseUint(digits, 16, 64)
	return number, err == nil && number > 0
}
