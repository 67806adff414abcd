// A table of spans: the rows of one text after another. Per span 16 bytes.
//   0  u32  its rows, at least one
//   4  u32  the position of its first row in its text
//   8  u32  where what the layer remembers of the text lies
//  12  u32  room for keys and values of so many tokens (attention)
export const SPAN: usize = 16;
export const POSITION: usize = 4;
export const MEMORY: usize = 8;
export const CAPACITY: usize = 12;
