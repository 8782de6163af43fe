package local

import (
	"fmt"
	"strconv"
	"strings"
)

// segmentSuffix ends the names of segment files.
const segmentSuffix = ".seg"

func segmentName(number uint64) string { return fmt.Sprintf("%016x%s", number, segmentSuffix) }

func parseSegmentName(name string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, segmentSuffix)
	if !ok || len(digits) != 16 {
		return 0, false
	}
	number, err := strconv.ParseUint(digits, 16, 64)
	return number, err == nil && number > 0
}
