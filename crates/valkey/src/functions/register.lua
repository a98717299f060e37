-- What takes memory is refused where there is none. What frees it, or must be seen, is done all the same. While this is loaded there is nothing but the language itself.
local function register_always(name, callback) redis.register_function({ function_name = name, callback = callback, flags = { 'allow-oom' } }) end
