-- Answer with a file of the folder CC_WWW, all of which are named by their size.
local folder = os.getenv("CC_WWW")
local chunk_bytes = 256 * 1024

core.register_service("files", "http", function(applet)
    local name = applet.path:match("^/(%d+)$")
    local file = name and io.open(folder .. "/" .. name, "rb")
    if not file then
        applet:set_status(404)
        applet:add_header("content-length", "0")
        applet:start_response()
        return
    end
    applet:set_status(200)
    applet:add_header("content-length", tostring(file:seek("end")))
    applet:start_response()
    file:seek("set")
    for chunk in function() return file:read(chunk_bytes) end do
        applet:send(chunk)
    end
    file:close()
end)
