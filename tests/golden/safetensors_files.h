/* SPDX-License-Identifier: MIT
 *
 * Made by make_formats.py: do not edit.
 */
/* clang-format off */
static const double safetensors_0_0[] = {0x1.999999999999ap-4, -0x0.0p+0, 0x1.1ccf385ebc8a0p+1023, 0x0.0000000000001p-1022};
static const double safetensors_0_1[] = {-0x1.0000000000000p+53, 0x1.c000000000000p+2};
static const double safetensors_0_2[] = {0x1.0000000000000p+53};
static const double safetensors_0_3[] = {0x1.0000000000000p-1, -0x1.4000000000000p+0, 0x1.0000000000000p-149};
static const double safetensors_0_4[] = {-0x1.0000000000000p+31};
static const double safetensors_0_5[] = {0x1.fffffffe00000p+31};
static const double safetensors_0_6[] = {0x1.0000000000000p+0, -0x1.9200000000000p+1};
static const double safetensors_0_7[] = {0x1.ffc0000000000p+15, -0x1.5540000000000p-2};
static const double safetensors_0_8[] = {-0x1.0000000000000p+15};
static const double safetensors_0_9[] = {0x1.fffe000000000p+15};
static const double safetensors_0_10[] = {-0x1.0000000000000p+7};
static const double safetensors_0_11[] = {0x1.fe00000000000p+7};
static const double safetensors_0_12[] = {0x1.0000000000000p+0, 0x0.0p+0, 0x1.0000000000000p+0};
static const double safetensors_0_13[] = {0x1.0000000000000p+0, 0x1.0000000000000p+1, 0x1.8000000000000p+1};
static const double safetensors_0_14[] = {0x1.2000000000000p+3, 0x1.2000000000000p+3};
static const struct safetensors_tensor safetensors_0[] = {
    {"d", "F64", 2, {2, 2}, safetensors_0_0},
    {"l", "I64", 1, {2}, safetensors_0_1},
    {"ul", "U64", 1, {1}, safetensors_0_2},
    {"f", "F32", 1, {3}, safetensors_0_3},
    {"i", "I32", 1, {1}, safetensors_0_4},
    {"u", "U32", 1, {1}, safetensors_0_5},
    {"b", "BF16", 1, {2}, safetensors_0_6},
    {"h", "F16", 2, {2, 1}, safetensors_0_7},
    {"s", "I16", 1, {1}, safetensors_0_8},
    {"us", "U16", 1, {1}, safetensors_0_9},
    {"c", "I8", 1, {1}, safetensors_0_10},
    {"uc", "U8", 1, {1}, safetensors_0_11},
    {"m", "BOOL", 2, {1, 3}, safetensors_0_12},
    {"e", "F8_E4M3", 1, {3}, safetensors_0_13},
    {"new", "F5_X", 1, {4}, safetensors_0_14},
};
static const double safetensors_1_0[] = {0x1.0000000000000p+0, 0x1.0000000000000p+1, 0x1.8000000000000p+1, 0x1.0000000000000p+2};
static const double safetensors_1_1[] = {-0x1.0000000000000p+0, -0x1.0000000000000p+1, -0x1.8000000000000p+1};
static const struct safetensors_tensor safetensors_1[] = {
    {"wte.weight", "F32", 2, {2, 2}, safetensors_1_0},
    {"wpe.weight", "F32", 2, {3, 1}, safetensors_1_1},
};
static const double safetensors_2_0[] = {0x1.0000000000000p+0, 0x1.0000000000000p+1, 0x1.8000000000000p+1, 0x1.0000000000000p+2};
static const double safetensors_2_1[] = {-0x1.0000000000000p+0, -0x1.0000000000000p+1, -0x1.8000000000000p+1};
static const struct safetensors_tensor safetensors_2[] = {
    {"wte.weight", "F32", 2, {2, 2}, safetensors_2_0},
    {"wpe.weight", "F32", 2, {3, 1}, safetensors_2_1},
};
static const double safetensors_3_0[] = {0x1.0000000000000p+0, 0x1.0000000000000p+1, 0x1.8000000000000p+1, 0x1.0000000000000p+2};
static const double safetensors_3_1[] = {-0x1.0000000000000p+0, -0x1.0000000000000p+1, -0x1.8000000000000p+1};
static const struct safetensors_tensor safetensors_3[] = {
    {"wte.weight", "F32", 2, {2, 2}, safetensors_3_0},
    {"wpe.weight", "F32", 2, {3, 1}, safetensors_3_1},
};
static const double safetensors_4_0[] = {0x1.8000000000000p+0};
static const double safetensors_4_1[] = {0x1.4000000000000p+1};
static const double safetensors_4_2[] = {0x1.8000000000000p+1};
static const struct safetensors_tensor safetensors_4[] = {
    {"\303\274\344\275\240\360\237\230\200", "F32", 1, {1}, safetensors_4_0},
    {"a\042b\134c\012\011/", "F64", 0, {0}, safetensors_4_1},
    {"", "F16", 2, {1, 1}, safetensors_4_2},
};
static const double safetensors_5_0[] = {0x1.8000000000000p+0};
static const double safetensors_5_1[] = {0x1.4000000000000p+1};
static const double safetensors_5_2[] = {0x1.8000000000000p+1};
static const struct safetensors_tensor safetensors_5[] = {
    {"\303\274\344\275\240\360\237\230\200", "F32", 1, {1}, safetensors_5_0},
    {"a\042b\134c\012\011/", "F64", 0, {0}, safetensors_5_1},
    {"", "F16", 2, {1, 1}, safetensors_5_2},
};
static const double safetensors_6_0[] = {0};
static const double safetensors_6_1[] = {0x1.0000000000000p+0};
static const double safetensors_6_2[] = {0};
static const double safetensors_6_3[] = {0x1.0000000000000p+0};
static const struct safetensors_tensor safetensors_6[] = {
    {"none", "F32", 2, {0, 4}, safetensors_6_0},
    {"one", "F32", 1, {1}, safetensors_6_1},
    {"nil", "F64", 3, {2, 0, 3}, safetensors_6_2},
    {"nine", "F32", 9, {1, 1, 1, 1, 1, 1, 1, 1}, safetensors_6_3},
};
static const struct safetensors_tensor safetensors_7[] = {
    {0}
};
static const struct safetensors_case safetensors_cases[] = {
    {"every dtype", 994,
     "x\003\000\000\000\000\000\000{\042__metadata__\042:{\042format\042:\042pt\042,\042by\042:\042hand"
     "\042},\042d\042:{\042dtype\042:\042F64\042,\042shape\042:[2,2],\042data_offsets\042:[0,32]},\042l"
     "\042:{\042dtype\042:\042I64\042,\042shape\042:[2],\042data_offsets\042:[32,48]},\042ul\042:{\042d"
     "type\042:\042U64\042,\042shape\042:[1],\042data_offsets\042:[48,56]},\042f\042:{\042dtype\042:\042"
     "F32\042,\042shape\042:[3],\042data_offsets\042:[56,68]},\042i\042:{\042dtype\042:\042I32\042,\042"
     "shape\042:[1],\042data_offsets\042:[68,72]},\042u\042:{\042dtype\042:\042U32\042,\042shape\042:[1"
     "],\042data_offsets\042:[72,76]},\042b\042:{\042dtype\042:\042BF16\042,\042shape\042:[2],\042data_"
     "offsets\042:[76,80]},\042h\042:{\042dtype\042:\042F16\042,\042shape\042:[2,1],\042data_offsets\042"
     ":[80,84]},\042s\042:{\042dtype\042:\042I16\042,\042shape\042:[1],\042data_offsets\042:[84,86]},\042"
     "us\042:{\042dtype\042:\042U16\042,\042shape\042:[1],\042data_offsets\042:[86,88]},\042c\042:{\042"
     "dtype\042:\042I8\042,\042shape\042:[1],\042data_offsets\042:[88,89]},\042uc\042:{\042dtype\042:\042"
     "U8\042,\042shape\042:[1],\042data_offsets\042:[89,90]},\042m\042:{\042dtype\042:\042BOOL\042,\042"
     "shape\042:[1,3],\042data_offsets\042:[90,93]},\042e\042:{\042dtype\042:\042F8_E4M3\042,\042shape\042"
     ":[3],\042data_offsets\042:[93,96]},\042new\042:{\042dtype\042:\042F5_X\042,\042shape\042:[4],\042"
     "data_offsets\042:[96,98]}}    \232\231\231\231\231\231\271\077\000\000\000\000\000\000\000\200\240"
     "\310\353\205\363\314\341\177\001\000\000\000\000\000\000\000\000\000\000\000\000\000\340\377\007\000"
     "\000\000\000\000\000\000\000\000\000\000\000\000 \000\000\000\000\077\000\000\240\277\001\000\000"
     "\000\000\000\000\200\377\377\377\377\200\077I\300\377{U\265\000\200\377\377\200\377\001\000\001\001"
     "\002\003\011\011",
     15, safetensors_0},
    {"names sorted apart from the data", 172,
     "\210\000\000\000\000\000\000\000{\042wpe.weight\042:{\042dtype\042:\042F32\042,\042shape\042:[3,1"
     "],\042data_offsets\042:[16,28]},\042wte.weight\042:{\042dtype\042:\042F32\042,\042shape\042:[2,2]"
     ",\042data_offsets\042:[0,16]}}    \000\000\200\077\000\000\000@\000\000@@\000\000\200@\000\000\200"
     "\277\000\000\000\300\000\000@\300",
     2, safetensors_1},
    {"header not padded", 168,
     "\204\000\000\000\000\000\000\000{\042wte.weight\042:{\042dtype\042:\042F32\042,\042shape\042:[2,2"
     "],\042data_offsets\042:[0,16]},\042wpe.weight\042:{\042dtype\042:\042F32\042,\042shape\042:[3,1],"
     "\042data_offsets\042:[16,28]}}\000\000\200\077\000\000\000@\000\000@@\000\000\200@\000\000\200\277"
     "\000\000\000\300\000\000@\300",
     2, safetensors_2},
    {"header with spaces", 268,
     "\350\000\000\000\000\000\000\000{\012 \042__metadata__\042: {},\012 \042wte.weight\042: {\012  \042"
     "dtype\042: \042F32\042,\012  \042shape\042: [\012   2,\012   2\012  ],\012  \042data_offsets\042:"
     " [\012   0,\012   16\012  ]\012 },\012 \042wpe.weight\042: {\012  \042dtype\042: \042F32\042,\012"
     "  \042shape\042: [\012   3,\012   1\012  ],\012  \042data_offsets\042: [\012   16,\012   28\012  "
     "]\012 }\012}\000\000\200\077\000\000\000@\000\000@@\000\000\200@\000\000\200\277\000\000\000\300\000"
     "\000@\300",
     2, safetensors_3},
    {"names in UTF-8", 206,
     "\270\000\000\000\000\000\000\000{\042\303\274\344\275\240\360\237\230\200\042:{\042dtype\042:\042"
     "F32\042,\042shape\042:[1],\042data_offsets\042:[0,4]},\042a\134\042b\134\134c\134n\134t/\042:{\042"
     "dtype\042:\042F64\042,\042shape\042:[],\042data_offsets\042:[4,12]},\042\042:{\042dtype\042:\042F"
     "16\042,\042shape\042:[1,1],\042data_offsets\042:[12,14]}}  \000\000\300\077\000\000\000\000\000\000"
     "\004@\000B",
     3, safetensors_4},
    {"names escaped", 222,
     "\310\000\000\000\000\000\000\000{\042\134u00fc\134u4f60\134ud83d\134ude00\042:{\042dtype\042:\042"
     "F32\042,\042shape\042:[1],\042data_offsets\042:[0,4]},\042a\134\042b\134\134c\134n\134t/\042:{\042"
     "dtype\042:\042F64\042,\042shape\042:[],\042data_offsets\042:[4,12]},\042\042:{\042dtype\042:\042F"
     "16\042,\042shape\042:[1,1],\042data_offsets\042:[12,14]}}   \000\000\300\077\000\000\000\000\000\000"
     "\004@\000B",
     3, safetensors_5},
    {"empty tensors", 264,
     "\370\000\000\000\000\000\000\000{\042none\042:{\042dtype\042:\042F32\042,\042shape\042:[0,4],\042"
     "data_offsets\042:[0,0]},\042one\042:{\042dtype\042:\042F32\042,\042shape\042:[1],\042data_offsets"
     "\042:[0,4]},\042nil\042:{\042dtype\042:\042F64\042,\042shape\042:[2,0,3],\042data_offsets\042:[4,"
     "4]},\042nine\042:{\042dtype\042:\042F32\042,\042shape\042:[1,1,1,1,1,1,1,1,1],\042data_offsets\042"
     ":[4,8]}}   \000\000\200\077\000\000\200\077",
     4, safetensors_6},
    {"no tensor", 16,
     "\010\000\000\000\000\000\000\000{}      ",
     0, safetensors_7},
};
/* clang-format on */
